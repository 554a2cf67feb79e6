"""Transcripts of groups with members of the consumer protocol; see `consumer_transcript`.

`PENSTOCK_REWRITE=1` rewrites the events: review them then.
"""

import os
from pathlib import Path

import pytest

from penstock.config.group import GroupConfig
from support.groups.consumer_transcript import ConsumerStory
from support.groups.group_transcript import replayed

HERE = Path(__file__).parent
TRANSCRIPTS = sorted([*(HERE / "consumer").glob("*.txt"), *(HERE / "migration").glob("*.txt")])

POLICIES = {"disabled", "upgrade", "downgrade"}


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_group_follows_the_transcript(path: Path) -> None:
    """A file whose name ends in a migration policy runs with that policy."""
    policy = path.stem.rpartition("_")[2]
    config = GroupConfig(
        group_initial_rebalance_delay_ms=0,
        group_consumer_assignment_interval_ms=0,
        group_consumer_migration_policy=policy if policy in POLICIES else "bidirectional",
    )
    actual = replayed(path, config, ConsumerStory)
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(actual)
    assert actual == path.read_text()
