"""A leader's wish for another ISR (KIP-497): judged, written at the version that it knows."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from penstock.controller.controlled_shutdown import check_broker_epoch
from penstock.controller.office import Office
from penstock.controller.partition_states import reread, state_record
from penstock.controller.term import NotController
from penstock.controller.topic_rules import InvalidRequest, UnknownTopic
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata import paths
from penstock.metadata.image import ImageDelta, Partition
from penstock.metadata.records import encode
from penstock.metadata.refusal import StoreError
from penstock.metadata.store import Node, Set
from penstock.types import BrokerId, TopicPartition


class FencedLeader(KafkaError):
    """Another leader was elected since."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class NotTheLeader(KafkaError):
    """Only the leader says who is in sync."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class OutrunIsrChange(KafkaError):
    """The partition's state has changed since the leader last heard of it."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class IneligibleReplica(KafkaError):
    """The replica is not alive, leaves, or has restarted since the leader saw it (KIP-903)."""

    code = ErrorCode.INELIGIBLE_REPLICA


class IsrMember(NamedTuple):
    """A replica in sync, with the epoch of its broker that the leader saw; -1: it does not say."""

    broker: BrokerId
    epoch: int = -1


class WantedIsr(NamedTuple):
    """What a leader asks for, and the state that it knows."""

    where: TopicPartition
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]
    recovering: bool = False


def judged(office: Office, leader: BrokerId, wanted: WantedIsr) -> Partition | None:
    """The partition as it will be; None if it is so already."""
    partition = office.image.partition(wanted.where)
    if partition is None:
        raise UnknownTopic(f"{wanted.where} is not known")
    if wanted.leader_epoch < partition.leader_epoch:
        raise FencedLeader(f"{wanted.where} is in leader epoch {partition.leader_epoch}")
    if (
        wanted.leader_epoch > partition.leader_epoch
        or wanted.partition_epoch > partition.partition_epoch
    ):
        raise NotController(f"a newer controller has decided on {wanted.where}")
    if leader != partition.leader:
        raise NotTheLeader(f"{wanted.where} is led by broker {partition.leader}")
    isr = tuple(each.broker for each in wanted.isr)
    if set(isr) == set(partition.isr) and wanted.recovering == partition.recovering:
        return None
    if wanted.partition_epoch < partition.partition_epoch:
        raise OutrunIsrChange(f"{wanted.where} is in epoch {partition.partition_epoch}")
    _check_members(office, leader, wanted, partition)
    kept = [each for each in partition.isr if each in isr]
    grown = [each for each in isr if each not in kept]
    return replace(partition, isr=(*kept, *grown), recovering=wanted.recovering)


def _check_members(
    office: Office, leader: BrokerId, wanted: WantedIsr, partition: Partition
) -> None:
    isr = {each.broker for each in wanted.isr}
    if leader not in isr or not isr <= set(partition.replicas):
        raise InvalidRequest(f"the ISR {sorted(isr)} of {wanted.where} cannot be")
    if wanted.recovering and (not partition.recovering or len(isr) > 1):
        raise InvalidRequest(f"{wanted.where}: a leader that recovers is in sync alone")
    live = office.live(wanted.where, isr)
    for each in wanted.isr:
        known = office.image.brokers.get(each.broker)
        # A leader that leaves may still say that others have caught up or fallen behind.
        if each.broker != leader and each.broker not in live:
            raise IneligibleReplica(f"broker {each.broker} is not there for {wanted.where}")
        if known is not None and each.epoch not in {-1, known.epoch}:
            raise IneligibleReplica(f"broker {each.broker} has restarted since")


async def alter_isrs(
    office: Office, leader: BrokerId, leader_broker_epoch: int, wanted: Iterable[WantedIsr]
) -> Mapping[TopicPartition, Partition | KafkaError]:
    """Each partition as it is now, or why it stays as it was."""
    check_broker_epoch(office, leader, leader_broker_epoch)
    outcomes: dict[TopicPartition, Partition | KafkaError] = {}
    altered: dict[TopicPartition, Partition] = {}
    for each in wanted:
        try:
            after = judged(office, leader, each)
        except KafkaError as error:
            outcomes[each.where] = error
            continue
        if after is not None:
            altered[each.where] = replace(after, controller_epoch=office.term.epoch)
        else:
            current = office.image.partition(each.where)
            assert current is not None
            outcomes[each.where] = current
    answers = await office.term.write_each(
        [Set(paths.partition_state(where), encode(state_record(state)), state.partition_epoch)]
        for where, state in altered.items()
    )
    written, refused = {}, {}
    for (where, state), answer in zip(altered.items(), answers, strict=True):
        if isinstance(answer, StoreError):
            outcomes[where] = OutrunIsrChange(f"{where}: {answer}")
            refused[where] = answer
            continue
        (node,) = answer
        assert isinstance(node, Node)
        written[where] = outcomes[where] = replace(state, partition_epoch=node.version)
    if written:
        await office.announce(ImageDelta(partitions=written), told=written)
    await reread(office, refused)
    return outcomes
