"""Transcripts of streams groups with classic members; see `streams_transcript`.

`PENSTOCK_REWRITE=1` rewrites the events: review them then.
"""

import os
from pathlib import Path

import pytest

from penstock.config.group import GroupConfig
from support.groups.group_transcript import replayed
from support.groups.streams_transcript import StreamsStory

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_group_follows_the_transcript(path: Path) -> None:
    actual = replayed(path, GroupConfig(group_initial_rebalance_delay_ms=0), StreamsStory)
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(actual)
    assert actual == path.read_text()
