"""Members of Kafka Streams in the classic protocol, without a network."""

import io
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.coordinator.group.classic.embedded_protocol import read_assignment
from penstock.coordinator.group.classic.join import GroupJoin
from penstock.coordinator.group.classic.member import Joined, ProtocolMetadata, Synced
from penstock.coordinator.group.classic.sync import GroupSync
from penstock.coordinator.group.errors import RebalanceInProgress
from penstock.coordinator.group.offsets import CommittedOffset, Committer
from penstock.errors import KafkaError
from penstock.types import TopicPartition
from penstock.wire.codec import encode
from penstock.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from penstock.wire.messages.consumer_protocol_assignment import TopicPartition as AssignedPartitions
from penstock.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from penstock.wire.messages.consumer_protocol_subscription import TopicPartition as OwnedPartitions
from support.groups.group_transcript import GROUP
from support.groups.streams_members import StreamsCluster, StreamsThread
from support.groups.streams_transcript import user_data


def assignment(partitions: set[int], data: bytes | None = b"leader") -> bytes:
    given = [AssignedPartitions("t", sorted(partitions))]
    return b"\x00\x03" + encode(ConsumerProtocolAssignment(given, data), 3)


@dataclass
class ClassicThread:
    """A cooperative client of the classic protocol: it revokes, then rejoins."""

    cluster: StreamsCluster
    process: str
    endpoint: str = "host:80"
    topics: tuple[str, ...] = ("t",)
    instance_id: str | None = None
    protocol: str = "stream"
    id: str = ""
    generation: int = -1
    has: set[int] = field(default_factory=set)
    reported: bytes | None = None
    new_id: str = ""
    waits_ms: int = 3000
    """How long it waits for the others: a classic group waits, a streams group does not."""
    data: bytes = b""
    """Its user data, if other than what Kafka Streams would send."""
    gets: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.next: Callable[[], None] = self.join

    def metadata(self) -> bytes:
        owned = [OwnedPartitions("t", sorted(self.has))] if self.has else []
        data = self.data or user_data(self.process, self.endpoint)
        return b"\x00\x03" + encode(
            ConsumerProtocolSubscription(list(self.topics), data, owned, self.generation), 3
        )

    def join(self) -> None:
        request = GroupJoin(
            member_id=self.id,
            new_member_id=self.new_id or f"classic-{self.process[-1]}",
            instance_id=self.instance_id,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=(ProtocolMetadata(self.protocol, self.metadata()),),
        )
        pending = self.cluster.groups.join(GROUP, request)
        self.cluster.pass_ms(self.waits_ms)
        joined = checked(pending.reply)
        assert isinstance(joined, Joined)
        self.id, self.generation = joined.member_id, joined.generation
        self.next = self.sync

    def sync(self, assignments: tuple[tuple[str, bytes], ...] = ()) -> None:
        request = GroupSync(
            member_id=self.id,
            generation=self.generation,
            protocol_type="consumer",
            protocol=self.protocol,
            assignments=dict(assignments),
        )
        synced = checked(self.cluster.groups.sync(GROUP, request).reply)
        assert isinstance(synced, Synced)
        read = read_assignment(synced.assignment)
        self.reported = read.user_data
        self.gets = {index for each in read.assigned_partitions for index in each.partitions}
        self.next = self.take

    def take(self) -> None:
        """Revokes what it no longer gets, and then rejoins."""
        revokes, self.has = self.has - self.gets, self.gets
        self.next = self.join if revokes else self.beat

    def beat(self) -> None:
        """Sends a heartbeat; joins next if the response says so."""
        reply = self.cluster.groups.heartbeat(GROUP, self.id, self.generation).reply
        if isinstance(reply, RebalanceInProgress):
            self.next = self.join
        else:
            checked(reply)

    def step(self) -> None:
        """Does the next thing; others act in between."""
        try:
            self.next()
        except RebalanceInProgress:
            self.next = self.join

    def settle(self) -> None:
        """Continues until only heartbeats are left to do."""
        self.step()
        while self.next != self.beat:
            self.step()

    def commit(self) -> object:
        committer = Committer(generation=self.generation, member_id=self.id)
        offsets = ((TopicPartition("t", 0), CommittedOffset(7)),)
        return self.cluster.groups.commit(GROUP, committer, offsets).reply


def checked(reply: object) -> object:
    if isinstance(reply, KafkaError):
        raise reply
    assert reply is not None
    return reply


def rolled(old: ClassicThread, new: StreamsThread) -> None:
    """Both continue until nothing moves."""
    for _ in range(4):
        old.settle()
        new.beat()


def told_hosts(data: bytes | None) -> list[tuple[str, list[int]]]:
    """The endpoints in an assignment of version 11, with the active partitions of each."""
    assert data is not None
    read = io.BytesIO(data)

    def number() -> int:
        return int(struct.unpack(">i", read.read(4))[0])

    def text() -> str:
        return read.read(struct.unpack(">H", read.read(2))[0]).decode("ascii")

    assert (number(), number()) == (11, 11)
    for _ in range(number()):
        assert (number(), number(), number())[2] == 0, "tasks have no names"
    assert number() == 0, "there are no standbys"
    for _ in range(number()):
        number(), text()
    found = []
    for _ in range(number()):
        host = f"{text()}:{number()}"
        found.append((host, [(number(), number())[1] for _ in range(number())]))
    return found
