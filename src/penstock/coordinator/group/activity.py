"""What only a group's coordinator knows of it: rebalances, refused commits, times of commits."""

import msgspec

from penstock.coordinator.group.rebalance_log import Rebalances
from penstock.coordinator.group.refused_commits import RefusedCommit


class CommitTime(msgspec.Struct, frozen=True):
    """When the group last committed an offset in a partition, in wall time."""

    topic: str
    partition: int
    commit_ms: int


class GroupActivity(msgspec.Struct, frozen=True):
    """As the HTTP page shows it."""

    history: Rebalances
    refused_commits: tuple[RefusedCommit, ...]
    commits: tuple[CommitTime, ...]
