"""AlterPartition (KIP-497): a leader requests another ISR; the controller checks and writes it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from penstock.controller.context import ControllerContext
from penstock.controller.controlled_shutdown import check_broker_epoch
from penstock.controller.epoch import NotController
from penstock.controller.partition_states import CHANGED_ELSEWHERE, reread, state_record
from penstock.controller.topic_rules import UnknownTopic
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.metadata import paths
from penstock.metadata.errors import StoreError
from penstock.metadata.image import ImageDelta, PartitionRegistration
from penstock.metadata.records import encode
from penstock.metadata.store import Node, Set
from penstock.types import BrokerId, TopicPartition


class FencedLeader(KafkaError):
    """Another leader was elected since."""

    code = ErrorCode.FENCED_LEADER_EPOCH


class NotTheLeader(KafkaError):
    """Only the leader may change the ISR."""

    code = ErrorCode.NOT_LEADER_OR_FOLLOWER


class StalePartitionEpoch(KafkaError):
    """The partition's state is newer than the one that the leader knows."""

    code = ErrorCode.INVALID_UPDATE_VERSION


class StateNotWritten(KafkaError):
    """The controller has yet to write another state, in a new leader epoch; the leader retries
    then.
    """

    code = ErrorCode.LEADER_NOT_AVAILABLE


class IneligibleReplica(KafkaError):
    """The replica is down, shutting down, or has restarted since the leader saw it (KIP-903)."""

    code = ErrorCode.INELIGIBLE_REPLICA


class IsrMember(NamedTuple):
    """An in-sync replica with the broker epoch that the leader saw; -1: not stated."""

    broker: BrokerId
    epoch: int = -1


class RequestedIsr(NamedTuple):
    """The ISR that a leader requests, and the state that it knows."""

    topic_partition: TopicPartition
    leader_epoch: int
    partition_epoch: int
    isr: tuple[IsrMember, ...]
    recovering: bool = False


def altered_partition(
    context: ControllerContext, leader: BrokerId, requested: RequestedIsr
) -> PartitionRegistration | None:
    """The partition with the requested ISR; None if it has that already."""
    partition = context.image.partition(requested.topic_partition)
    if partition is None:
        raise UnknownTopic(f"{requested.topic_partition} does not exist")
    if requested.leader_epoch < partition.leader_epoch:
        raise FencedLeader(
            f"{requested.topic_partition} is in leader epoch {partition.leader_epoch}"
        )
    if (
        requested.leader_epoch > partition.leader_epoch
        or requested.partition_epoch > partition.partition_epoch
    ):
        raise NotController(f"a newer controller has decided on {requested.topic_partition}")
    if leader != partition.leader:
        raise NotTheLeader(f"{requested.topic_partition} is led by broker {partition.leader}")
    if requested.topic_partition in context.changed_elsewhere:
        # The ISR in the image may not be the store's. The leader must not commit records by it, nor
        # bring a replica back that had to leave because it may lack records.
        raise StateNotWritten(f"the state of {requested.topic_partition} is about to be written")
    isr = tuple(each.broker for each in requested.isr)
    if set(isr) == set(partition.isr) and requested.recovering == partition.recovering:
        return None
    if requested.partition_epoch < partition.partition_epoch:
        raise StalePartitionEpoch(
            f"{requested.topic_partition} is in epoch {partition.partition_epoch}"
        )
    _check_members(context, leader, requested, partition)
    remaining = [each for each in partition.isr if each in isr]
    added = [each for each in isr if each not in remaining]
    return replace(partition, isr=(*remaining, *added), recovering=requested.recovering)


def _check_members(
    context: ControllerContext,
    leader: BrokerId,
    requested: RequestedIsr,
    partition: PartitionRegistration,
) -> None:
    isr = {each.broker for each in requested.isr}
    if leader not in isr or not isr <= set(partition.replicas):
        raise InvalidRequest(
            f"the ISR {sorted(isr)} of {requested.topic_partition} is not possible"
        )
    if requested.recovering and (not partition.recovering or len(isr) > 1):
        raise InvalidRequest(
            f"{requested.topic_partition}: a recovering leader must be alone in the ISR"
        )
    live = context.live_replicas(requested.topic_partition, isr)
    for each in requested.isr:
        known = context.image.brokers.get(each.broker)
        # A leader that is shutting down may still report which replicas are in sync.
        if each.broker != leader and each.broker not in live:
            raise IneligibleReplica(
                f"broker {each.broker} has no live replica of {requested.topic_partition}"
            )
        if known is not None and each.epoch not in {-1, known.epoch}:
            raise IneligibleReplica(f"broker {each.broker} has restarted since then")


async def alter_isrs(
    context: ControllerContext,
    leader: BrokerId,
    leader_broker_epoch: int,
    requested: Iterable[RequestedIsr],
) -> Mapping[TopicPartition, PartitionRegistration | KafkaError]:
    """Each partition after the change, or why it was refused."""
    check_broker_epoch(context, leader, leader_broker_epoch)
    results: dict[TopicPartition, PartitionRegistration | KafkaError] = {}
    altered: dict[TopicPartition, PartitionRegistration] = {}
    missed = set()
    for each in requested:
        try:
            after = altered_partition(context, leader, each)
        except KafkaError as error:
            results[each.topic_partition] = error
            if isinstance(error, StalePartitionEpoch):
                missed.add(each.topic_partition)
            continue
        if after is not None:
            altered[each.topic_partition] = replace(after, controller_epoch=context.epoch.number)
        else:
            current = context.image.partition(each.topic_partition)
            assert current is not None
            results[each.topic_partition] = current
    if missed:
        # Another writer changed the state before this controller read it. Brokers ignore a leader
        # epoch that they know, so the leader learns of it by a new one only.
        context.changed_elsewhere |= missed
        context.repair_soon()
    answers = await context.epoch.write_each(
        [
            Set(
                paths.partition_state(topic_partition),
                encode(state_record(state)),
                state.partition_epoch,
            )
        ]
        for topic_partition, state in altered.items()
    )
    written, refused = {}, {}
    for (topic_partition, state), answer in zip(altered.items(), answers, strict=True):
        if isinstance(answer, StoreError):
            # After this error the leader waits for a newer state.
            results[topic_partition] = (
                StalePartitionEpoch(f"{topic_partition}: {answer}")
                if isinstance(answer, CHANGED_ELSEWHERE)
                else answer
            )
            refused[topic_partition] = answer
            continue
        (node,) = answer
        assert isinstance(node, Node)
        written[topic_partition] = results[topic_partition] = replace(
            state, partition_epoch=node.version
        )
        before = context.image.partition(topic_partition)
        context.caught_up |= {
            (each, topic_partition)
            for each in context.unclean_shutdown_brokers
            if each in state.isr and before is not None and each not in before.isr
        }
    if written:
        await context.announce(ImageDelta(partitions=written), metadata_only=written)
    await reread(context, refused)
    return results
