"""A group's activity that only its coordinator knows: rebalances, refused commits, commit times."""

import msgspec

from penstock.coordinator.group.rebalance_log import Rebalances
from penstock.coordinator.group.refused_commits import RefusedCommit


class CommitTime(msgspec.Struct, frozen=True):
    """When the group last committed an offset in a partition, in wall time."""

    topic: str
    partition: int
    commit_ms: int


class GroupActivity(msgspec.Struct, frozen=True):
    """The activity of one group, as the HTTP page shows it."""

    history: Rebalances
    refused_commits: tuple[RefusedCommit, ...]
    commits: tuple[CommitTime, ...]
