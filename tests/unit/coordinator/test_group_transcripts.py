"""Transcripts of classic groups. `PENSTOCK_REWRITE=1` rewrites the events: review them then."""

import os
from pathlib import Path

import pytest

from penstock.config.group import GroupConfig
from support.groups.group_transcript import replayed

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))

CONFIG = GroupConfig(offsets_retention_minutes=1)


@pytest.mark.row("A046", "A047", "A049", "A050", "A051")
@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_group_follows_the_transcript(path: Path) -> None:
    actual = replayed(path, CONFIG)
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(actual)
    assert actual == path.read_text()
