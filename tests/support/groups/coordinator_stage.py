"""A group coordinator with its log in memory and its loop."""

from typing import Any

from penstock.config.group import GroupConfig
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.member import Joined, ProtocolMetadata
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.coordinator.result import PendingReply
from penstock.errors import ErrorCode, KafkaError
from penstock.testing.loop import ManualLoop
from penstock.types import TopicPartition
from support.groups.group_transcript import GROUP, LoopClock, MemoryLog, coordinator

TOPIC_PARTITION = TopicPartition("t", 0)
CONFIG = GroupConfig()


class Stage:
    """A coordinator with its log and its loop."""

    def __init__(self) -> None:
        self.loop, self.log = ManualLoop(), MemoryLog()
        self.groups = self.started()

    def started(self) -> GroupCoordinator:
        return coordinator(self.log, self.loop, LoopClock(self.loop), CONFIG)

    def commit(
        self, offset: int, group: str = GROUP
    ) -> PendingReply[tuple[KafkaError | None, ...]]:
        return self.groups.commit(group, Committer(), ((TOPIC_PARTITION, CommittedOffset(offset)),))

    def is_ready(self, pending: PendingReply[Any]) -> bool:
        return self.groups.runtime.reply(pending) is not None

    def join(self) -> PendingReply[Joined]:
        joining = GroupJoin(
            new_member_id="a",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=(ProtocolMetadata("range", b""),),
        )
        return self.groups.join(GROUP, joining)


def code(pending: PendingReply[Any]) -> ErrorCode:
    assert isinstance(pending.reply, KafkaError)
    return pending.reply.code
