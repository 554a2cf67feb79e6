"""What a classic group does, as stories. `PENSTOCK_REWRITE=1` writes the events: then read them."""

import os
from pathlib import Path

import pytest

from group_transcript import replayed
from penstock.config.group import GroupConfig

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))

CONFIG = GroupConfig(offsets_retention_minutes=1)


@pytest.mark.row("A046", "A047", "A049", "A050", "A051")
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_group_does_what_the_transcript_tells(path: Path) -> None:
    told = replayed(path, CONFIG)
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(told)
    assert told == path.read_text()
