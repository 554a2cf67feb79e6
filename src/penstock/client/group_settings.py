"""Settings of a member of a consumer group, by Kafka's names."""

from dataclasses import dataclass
from enum import Enum

from penstock.client.listing import IsolationLevel
from penstock.client.membership.assignor import ASSIGNORS, Assignor


class GroupProtocol(Enum):
    """Kafka's `group.protocol`."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    """KIP-848: the coordinator assigns; rebalances do not stop the other members."""


class OffsetReset(Enum):
    """Kafka's `auto.offset.reset`: where to start without a committed offset."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Kafka's consumer settings, with its defaults; except that automatic commits are off."""

    protocol: GroupProtocol = GroupProtocol.CLASSIC
    offset_reset: OffsetReset = OffsetReset.LATEST
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    auto_commit_interval_ms: int | None = None
    """Commit what earlier polls returned, in a poll after this time; None: `commit` only."""
    instance_id: str | None = None
    """Static membership: a restart within the session timeout causes no rebalance (KIP-345)."""
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    max_poll_records: int = 500
    metadata_max_age_ms: int = 300_000
    assignors: tuple[Assignor, ...] = (ASSIGNORS["range"], ASSIGNORS["cooperative-sticky"])
    """Classic protocol: the leader uses the first one that all members offer."""
    server_assignor: str | None = None
    """Consumer protocol: `uniform` or `range`; None leaves it to the coordinator."""
