"""What groups with members of the consumer protocol do, as stories; see `consumer_transcript`.

`PENSTOCK_REWRITE=1` writes the events: then read them.
"""

import os
from pathlib import Path

import pytest

from consumer_transcript import ConsumerStory
from group_transcript import replayed
from penstock.config.group import GroupConfig

HERE = Path(__file__).parent
TRANSCRIPTS = sorted([*(HERE / "consumer").glob("*.txt"), *(HERE / "migration").glob("*.txt")])

POLICIES = {"disabled", "upgrade", "downgrade"}


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_group_does_what_the_transcript_tells(path: Path) -> None:
    """A file whose name ends in a policy is of a broker with that policy."""
    policy = path.stem.rpartition("_")[2]
    config = GroupConfig(
        group_initial_rebalance_delay_ms=0,
        group_consumer_assignment_interval_ms=0,
        group_consumer_migration_policy=policy if policy in POLICIES else "bidirectional",
    )
    told = replayed(path, config, ConsumerStory)
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(told)
    assert told == path.read_text()
