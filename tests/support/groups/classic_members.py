"""Members of the classic protocol without a network, eager or cooperative."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from penstock.coordinator.group.classic.embedded_protocol import (
    assignment_bytes,
    read_assignment,
    read_subscription,
)
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.leave import LeavingMember
from penstock.coordinator.group.classic.member import (
    ClassicGroupMember,
    Joined,
    ProtocolMetadata,
    Synced,
)
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.consumer.member import NO_PARTITIONS, Assignment
from penstock.coordinator.group.migration.assignment import assignment_by_name, names_of, owned
from penstock.coordinator.result import PendingReply
from penstock.errors import ErrorCode, KafkaError
from penstock.types import TopicIdPartition
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
    TopicPartition,
)
from support.groups.consumer_members import Cluster
from support.groups.group_transcript import GROUP

SESSION_MS, REBALANCE_MS = 30_000, 5_000


@dataclass
class ClassicConsumer:
    """A client's view: its member id, its generation, and the partitions that it owns."""

    cluster: Cluster
    name: str
    cooperative: bool
    topics: frozenset[str] = frozenset({"t"})
    id: str = ""
    generation: int = -1
    has: Assignment = NO_PARTITIONS
    must_join: bool = True
    must_sync: bool = False
    joining: PendingReply[Joined] | None = None
    syncing: PendingReply[Synced] | None = None
    _serial: Iterator[int] = field(default_factory=count)
    _leads: tuple[ClassicGroupMember, ...] = ()

    @property
    def protocol(self) -> str:
        return "cooperative-sticky" if self.cooperative else "range"

    def join(self) -> None:
        """An eager member revokes everything; a cooperative one states what it owns."""
        if not self.cooperative:
            self.has = NO_PARTITIONS
        owned_names = names_of(self.has, self.cluster.topics)
        subscription = ConsumerProtocolSubscription(
            topics=sorted(self.topics),
            owned_partitions=[TopicPartition(*each) for each in owned_names.items()],
        )
        self.syncing = None
        self.joining = self.cluster.groups.join(
            GROUP,
            GroupJoin(
                member_id=self.id,
                new_member_id=f"{self.name}-{next(self._serial)}",
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                protocol_type="consumer",
                protocols=(ProtocolMetadata(self.protocol, b"\0\1" + encode(subscription, 1)),),
            ),
        )
        self.receive_replies()

    def sync(self) -> None:
        if self.generation < 0 or self.must_join or self.joining is not None:
            return
        self.syncing = self.cluster.groups.sync(
            GROUP,
            GroupSync(
                member_id=self.id,
                generation=self.generation,
                protocol_type="consumer",
                protocol=self.protocol,
                assignments={
                    member_id: assignment_bytes(names_of(assignment, self.cluster.topics), b"\0\1")
                    for member_id, assignment in self._assignments().items()
                },
            ),
        )
        self.receive_replies()

    def beat(self) -> None:
        if self.generation >= 0 and self.joining is None and self.syncing is None:
            reply = self.cluster.groups.heartbeat(GROUP, self.id, self.generation).reply
            if isinstance(reply, KafkaError):
                self._refused(reply)

    def step(self) -> None:
        """What a client does next by itself."""
        if self.must_join and self.joining is None:
            self.join()
        elif self.must_sync and self.syncing is None:
            self.sync()
        else:
            self.beat()

    def leave(self) -> None:
        if self.id:
            self.cluster.groups.leave(GROUP, (LeavingMember(self.id),))
        self.forget()

    def forget(self) -> None:
        """Resets: it is no member, and owns nothing."""
        self.id, self.generation, self.has, self._leads = "", -1, NO_PARTITIONS, ()
        self.must_join, self.must_sync, self.joining, self.syncing = True, False, None, None

    def lose_replies(self) -> None:
        """The coordinator has moved: a client that waits for a reply rejoins."""
        if self.joining is not None or self.syncing is not None:
            self.must_join, self.joining, self.syncing = True, None, None

    def receive_replies(self) -> None:
        if self.joining is not None and self.joining.reply is not None:
            joined, self.joining = self.joining.reply, None
            if isinstance(joined, KafkaError):
                self._refused(joined)
            else:
                self.id, self.generation = joined.member_id, joined.generation
                self.must_join, self.must_sync, self._leads = False, True, joined.members
        if self.syncing is not None and self.syncing.reply is not None:
            synced, self.syncing = self.syncing.reply, None
            if isinstance(synced, KafkaError):
                self._refused(synced)
            else:
                self._take(synced.assignment)

    def _take(self, encoded: bytes) -> None:
        """Revokes at once what is no longer assigned, and confirms that by rejoining."""
        partitions = read_assignment(encoded).assigned_partitions if encoded else []
        assignment = assignment_by_name(partitions, self.cluster.topics)
        self.must_join, self.must_sync = bool(self.has - assignment), False
        self.has = assignment

    def _refused(self, error: KafkaError) -> None:
        match error.code:
            case ErrorCode.REBALANCE_IN_PROGRESS:
                self.must_join = True
            case ErrorCode.ILLEGAL_GENERATION:
                known = self.id
                self.forget()
                self.id = known
            case _:
                self.forget()

    def _assignments(self) -> dict[str, Assignment]:
        """Assigns as the leader, round robin; a partition that another member must revoke first
        waits.
        """
        subscriptions = {
            each.id: read_subscription(each.metadata(self.protocol)) for each in self._leads
        }
        has = {
            member_id: owned(each, self.cluster.topics) for member_id, each in subscriptions.items()
        }
        assignments: dict[str, set[TopicIdPartition]] = {
            member_id: set() for member_id in subscriptions
        }
        for name, topic in sorted(self.cluster.topics.items()):
            readers = sorted(
                member_id for member_id, each in subscriptions.items() if name in each.topics
            )
            for index in range(len(topic.partitions)):
                partition = TopicIdPartition(topic.id, index)
                owner = next(
                    (member_id for member_id, assignment in has.items() if partition in assignment),
                    None,
                )
                if readers and owner in {None, wanted := readers[index % len(readers)]}:
                    assignments[wanted].add(partition)
        return {member_id: frozenset(assignment) for member_id, assignment in assignments.items()}
