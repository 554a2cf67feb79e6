"""The JSON in the nodes, as in Kafka 3.9 in ZooKeeper mode, with its fields in Kafka's order.

Unknown fields are ignored, because a later Kafka may have written them. Kafka writes some longs as
strings, so that they survive JavaScript. A broker's registration is in `registration.py`.
"""

import logging
from collections.abc import Iterable, Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from penstock.metadata import paths
from penstock.metadata.errors import StoreError
from penstock.metadata.store import Node
from penstock.types import (
    NO_UUID,
    BrokerId,
    LeaderEpoch,
    ProducerId,
    TopicPartition,
    Uuid,
    parse_uuid,
    uuid_text,
)

NO_LEADER = BrokerId(-1)

MAX_INT16, MAX_INT32, MAX_INT64 = (1 << 15) - 1, (1 << 31) - 1, (1 << 63) - 1

# The sizes of fields in requests. A greater number, by a typing error in a shell, could be read and
# decided on, but no request could carry it: the brokers would get no further requests.
Id = Annotated[BrokerId, Meta(ge=0, le=MAX_INT32)]
LeaderId = Annotated[BrokerId, Meta(ge=NO_LEADER, le=MAX_INT32)]
Index = Annotated[int, Meta(ge=0, le=MAX_INT32)]
Number = Annotated[int, Meta(ge=-1, le=MAX_INT32 - 1)]
Epoch = Annotated[LeaderEpoch, Meta(ge=-1, le=MAX_INT32 - 1)]
"""Without the greatest number, so that there is a next epoch."""
Level = Annotated[int, Meta(ge=0, le=MAX_INT16)]

Kind = TypeVar("Kind")

logger = logging.getLogger(__name__)


REMEDIES: Mapping[str, str] = {
    paths.CLUSTER_ID: "restore it: a broker's meta.properties has the cluster.id",
    paths.CONTROLLER: "delete it, and the brokers elect a controller",
    paths.CONTROLLER_EPOCH: "set it to a number greater than the controller_epoch in the state "
    "node of any partition",
    paths.FEATURE: "restore it, or delete it: the controller then writes the highest levels that "
    "it supports",
}
"""How to repair the nodes that nothing works without."""
STATE_REMEDY = (
    "correct it, and do not delete it: any replica may lead a partition without a state, even one "
    "that lacks records"
)
SHOWN_BYTES = 60


class MalformedRecord(StoreError):
    """The node's content cannot be read."""

    def __init__(self, path: str, index: int | None = None, content: bytes | None = None) -> None:
        shown = "nothing" if not content else repr(content[:SHOWN_BYTES])[1:]
        remedy = f"; {REMEDIES[path]}" if path in REMEDIES else ""
        self.says = f"does not hold what belongs there, but {shown}{remedy}"
        super().__init__(path, index)


def decode(kind: type[Kind], node: Node) -> Kind:
    """The node's content."""
    try:
        return msgspec.json.decode(node.data or b"", type=kind)
    except (msgspec.DecodeError, ValueError) as error:
        raise MalformedRecord(node.path, content=node.data) from error


def decode_epoch(node: Node) -> int:
    """The content of `/controller_epoch`: a number that has a next one."""
    number = decode(int, node)
    if not 0 <= number < MAX_INT32:
        raise MalformedRecord(node.path, content=node.data)
    return number


def broker_id_of(name: str) -> BrokerId | None:
    """The broker whose node has this name; None if no broker can have that id."""
    if not name.isdecimal() or len(name) > len(str(MAX_INT32)) or int(name) > MAX_INT32:
        return None
    return BrokerId(int(name))


def decode_or_skip(kind: type[Kind], node: Node) -> Kind | None:
    """Like `decode`, but returns None with a warning for malformed content: one bad node, which
    anyone may have written, must not stop everything else.
    """
    try:
        return decode(kind, node)
    except MalformedRecord as error:
        remedy = STATE_REMEDY if kind is PartitionState else "correct or delete it"
        logger.warning("%s; the node is skipped: %s", error, remedy)
        return None


def encode(record: Struct | int) -> bytes:
    return msgspec.json.encode(record)


class ClusterId(Struct, frozen=True, kw_only=True):
    """`/cluster/id`."""

    version: str = "1"
    id: str


class ElectedController(Struct, frozen=True, kw_only=True):
    """`/controller`: the elected broker, and when."""

    version: int = 2
    broker: Id = field(name="brokerid")
    timestamp: str
    kraft_controller_epoch: int = field(name="kraftControllerEpoch", default=-1)


class Feature(Struct, frozen=True, kw_only=True):
    """`/feature`: the feature levels; they count only with status 1.

    Kafka 3.9 supports no feature on ZooKeeper, and does not start if it finds one. So the levels
    are in a field of their own, which it ignores.
    """

    features: dict[str, int] = field(default_factory=dict)
    version: int = 2
    status: int = 1
    penstock_features: dict[str, Level] | UnsetType = UNSET

    @classmethod
    def of(cls, levels: Mapping[str, int]) -> "Feature":
        return cls(penstock_features=dict(levels))

    def levels(self) -> dict[str, int]:
        found = self.penstock_features
        return {} if isinstance(found, UnsetType) or self.status != 1 else found


class TopicAssignment(Struct, frozen=True, kw_only=True):
    """`/brokers/topics/T`: the replica assignment. During a reassignment, `partitions` names the
    target replicas first and then those to be removed.
    """

    partitions: dict[Index, tuple[Id, ...]]
    topic_id: str | UnsetType = UNSET
    adding_replicas: dict[Index, tuple[Id, ...]] = field(default_factory=dict)
    removing_replicas: dict[Index, tuple[Id, ...]] = field(default_factory=dict)
    version: int = 3

    def __post_init__(self) -> None:
        """Refuse an assignment that cannot be carried out, when it is read."""
        self.id()
        for index, replicas in self.partitions.items():
            if not replicas:
                raise ValueError(f"partition {index} has no replicas")

    @classmethod
    def of(
        cls, topic_id: Uuid, partitions: Mapping[int, tuple[BrokerId, ...]]
    ) -> "TopicAssignment":
        return cls(partitions=dict(partitions), topic_id=uuid_text(topic_id))

    def id(self) -> Uuid:
        """`NO_UUID` if it was written before topics had ids."""
        return NO_UUID if isinstance(self.topic_id, UnsetType) else parse_uuid(self.topic_id)


class PartitionState(Struct, frozen=True, kw_only=True):
    """`…/partitions/P/state`: the ISR in the order it grew. Its node's version is the partition
    epoch.
    """

    controller_epoch: Number
    leader: LeaderId
    version: int = 1
    leader_epoch: Epoch
    isr: tuple[Id, ...]
    leader_recovery_state: int | UnsetType = UNSET
    """1 after an unclean election, until the leader reports its recovery; else absent."""

    def recovering(self) -> bool:
        return self.leader_recovery_state == 1


class ConfigOverrides(Struct, frozen=True, kw_only=True):
    """`/config/<type>/<name>`: the altered settings."""

    version: int = 1
    config: dict[str, str] = field(default_factory=dict)


class ConfigChange(Struct, frozen=True, kw_only=True):
    """`/config/changes/config_change_N`: whose settings to read again, e.g. `topics/t1`."""

    version: int = 2
    entity_path: str


class ProducerIdBlock(Struct, frozen=True, kw_only=True):
    """`/latest_producer_id_block`: the last allocated block, including its end."""

    version: int = 1
    broker: BrokerId
    block_start: str
    block_end: str

    def __post_init__(self) -> None:
        if not 0 <= self.next_start() < MAX_INT64:
            raise ValueError(f"no producer id follows {self.block_end}")

    @classmethod
    def of(cls, broker: BrokerId, start: ProducerId, size: int) -> "ProducerIdBlock":
        return cls(broker=broker, block_start=str(start), block_end=str(start + size - 1))

    def next_start(self) -> ProducerId:
        return ProducerId(int(self.block_end) + 1)


class PartitionName(Struct, frozen=True):
    """A partition in the lists below."""

    topic: str
    partition: int


class PartitionNames(Struct, frozen=True, kw_only=True):
    """`/admin/preferred_replica_election` and `/isr_change_notification/isr_change_N`."""

    version: int = 1
    partitions: tuple[PartitionName, ...]

    @classmethod
    def of(cls, partitions: Iterable[TopicPartition]) -> "PartitionNames":
        return cls(partitions=tuple(PartitionName(*each) for each in partitions))

    def named(self) -> list[TopicPartition]:
        return [TopicPartition(each.topic, each.partition) for each in self.partitions]


class PartitionReassignment(Struct, frozen=True):
    """The target replicas of a partition."""

    topic: str
    partition: int
    replicas: tuple[BrokerId, ...]


class PartitionReassignments(Struct, frozen=True, kw_only=True):
    """`/admin/reassign_partitions`: reassignments requested by older tools."""

    version: int = 1
    partitions: tuple[PartitionReassignment, ...]


class LogDirEvent(Struct, frozen=True, kw_only=True):
    """`/log_dir_event_notification/log_dir_event_N`: a log directory of the broker has failed."""

    version: int = 1
    broker: BrokerId
    event: int = 1
