"""What each broker is told of a change: LeaderAndIsr, UpdateMetadata, StopReplica. Pure.

In this order, as Kafka 3.9 sends them: a replica is there before clients hear of it, and it is
still known while it stops. One who has just joined hears first of all who there is: Kafka follows
nobody whom it does not know. Nothing is implied about what a request does not name.
"""

from collections.abc import Iterable

from penstock.controller.change import PartitionChange, StateChange, StoppedReplicas
from penstock.metadata.image import Broker, ClusterImage, Partition
from penstock.metadata.records import NO_LEADER
from penstock.types import BrokerId, TopicPartition, Uuid
from penstock.wire.messages.leader_and_isr import (
    LeaderAndIsrLiveLeader,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from penstock.wire.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from penstock.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

DELETED = BrokerId(-2)
"""As the leader in UpdateMetadata: the partition is being deleted, forget it."""

PARTITIONS_A_REQUEST = 1000
"""Larger changes go as several requests, so that other work is done in between."""

Order = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


def orders(change: StateChange, broker: Broker, listener: str) -> list[Order]:
    """What to send to this broker, which is in the image. `listener` is the one between brokers."""
    image = change.image
    if broker.id in change.joined:
        known = {each.where: each for each in _everything(image)}
        known |= {each.where: each for each in change.partitions}
        led, told = list(known.values()), [*known.values(), *_gone(change)]
    else:
        led, told = list(change.partitions), list(_named(change))
    replicas = [each for each in led if broker.id in each.state.replicas]
    stopped = [each for each in change.stopped if broker.id in each.replicas]
    leads = _leader_and_isr(image, broker, replicas, listener)
    metadata = _update_metadata(image, broker, told)
    stops = _stop_replica(image, broker, stopped)
    if broker.id in change.joined:
        return [*metadata, *leads, *stops, _end_of_all(image, broker)]
    return [*leads, *metadata, *stops]


def _end_of_all(image: ClusterImage, broker: Broker) -> LeaderAndIsrRequest:
    """Ends what a broker that has joined is told of: LeaderAndIsr without any partition.

    Replicas that it holds and was not told of are strays. `type` says as much of a single request
    only, and Kafka, which knows no such end, has nothing to do for this one.
    """
    return LeaderAndIsrRequest(
        controller_id=image.controller,
        controller_epoch=image.controller_epoch,
        broker_epoch=broker.epoch,
    )


def _everything(image: ClusterImage) -> Iterable[PartitionChange]:
    for topic in image.topics.values():
        for index, state in topic.partitions.items():
            if state.partition_epoch >= 0:
                yield PartitionChange(TopicPartition(topic.name, index), topic.id, state)


def _named(change: StateChange) -> Iterable[PartitionChange]:
    image = change.image
    changed = {each.where: each for each in change.partitions}
    for where in change.told:
        topic, state = image.topics.get(where.topic), image.partition(where)
        if topic is not None and state is not None:
            changed[where] = PartitionChange(where, topic.id, state)
    yield from changed.values()
    yield from _gone(change)


def _gone(change: StateChange) -> Iterable[PartitionChange]:
    image = change.image
    for stopped in change.stopped:
        if stopped.where.topic not in image.topics:
            gone = Partition(stopped.replicas, leader=DELETED)
            yield PartitionChange(stopped.where, stopped.topic_id, gone)


def _leader_and_isr(
    image: ClusterImage, broker: Broker, replicas: list[PartitionChange], listener: str
) -> Iterable[LeaderAndIsrRequest]:
    for some in _portions(replicas):
        leaders = {each.state.leader for each in some} - {NO_LEADER}
        yield LeaderAndIsrRequest(
            controller_id=image.controller,
            controller_epoch=image.controller_epoch,
            broker_epoch=broker.epoch,
            topic_states=[
                LeaderAndIsrTopicState(
                    topic_name=name,
                    topic_id=topic_id,
                    partition_states=[_replica_state(each, broker.id) for each in partitions],
                )
                for (name, topic_id), partitions in _by_topic(some).items()
            ],
            live_leaders=[
                LeaderAndIsrLiveLeader(broker_id=leader, host_name=at.host, port=at.port)
                for leader in sorted(leaders & image.brokers.keys())
                if (at := image.brokers[leader].endpoint(listener)) is not None
            ],
        )


def _replica_state(told: PartitionChange, broker: BrokerId) -> LeaderAndIsrPartitionState:
    state = told.state
    return LeaderAndIsrPartitionState(
        partition_index=told.where.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding_replicas),
        removing_replicas=list(state.removing_replicas),
        is_new=told.is_new_on(broker),
        leader_recovery_state=int(state.recovering),
    )


def _update_metadata(
    image: ClusterImage, broker: Broker, partitions: list[PartitionChange]
) -> Iterable[UpdateMetadataRequest]:
    live = [_live(each) for each in image.brokers.values()]
    for some in _portions(partitions) or [[]]:  # without partitions: who is alive
        yield UpdateMetadataRequest(
            controller_id=image.controller,
            controller_epoch=image.controller_epoch,
            broker_epoch=broker.epoch,
            topic_states=[
                UpdateMetadataTopicState(
                    topic_name=name,
                    topic_id=topic_id,
                    partition_states=[_metadata_state(each) for each in partitions],
                )
                for (name, topic_id), partitions in _by_topic(some).items()
            ],
            live_brokers=live,
        )


def _live(broker: Broker) -> UpdateMetadataBroker:
    return UpdateMetadataBroker(
        id=broker.id,
        endpoints=[
            UpdateMetadataEndpoint(
                port=each.port,
                host=each.host,
                listener=each.listener,
                security_protocol=each.protocol.number,
            )
            for each in broker.endpoints
        ],
        rack=broker.rack,
    )


def _metadata_state(told: PartitionChange) -> UpdateMetadataPartitionState:
    state = told.state
    return UpdateMetadataPartitionState(
        partition_index=told.where.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        zk_version=state.partition_epoch,
        replicas=list(state.replicas),
        offline_replicas=list(state.offline_replicas),
    )


def _stop_replica(
    image: ClusterImage, broker: Broker, stopped: list[StoppedReplicas]
) -> Iterable[StopReplicaRequest]:
    if not stopped:
        return
    topics: dict[str, list[StopReplicaPartitionState]] = {}
    for each in stopped:
        topics.setdefault(each.where.topic, []).append(
            StopReplicaPartitionState(
                partition_index=each.where.partition,
                leader_epoch=each.leader_epoch,
                delete_partition=each.delete,
            )
        )
    yield StopReplicaRequest(
        controller_id=image.controller,
        controller_epoch=image.controller_epoch,
        broker_epoch=broker.epoch,
        topic_states=[
            StopReplicaTopicState(topic_name=name, partition_states=states)
            for name, states in topics.items()
        ],
    )


def _portions(partitions: list[PartitionChange]) -> list[list[PartitionChange]]:
    return [
        partitions[start : start + PARTITIONS_A_REQUEST]
        for start in range(0, len(partitions), PARTITIONS_A_REQUEST)
    ]


def _by_topic(
    partitions: Iterable[PartitionChange],
) -> dict[tuple[str, Uuid], list[PartitionChange]]:
    topics: dict[tuple[str, Uuid], list[PartitionChange]] = {}
    for each in partitions:
        topics.setdefault((each.where.topic, each.topic_id), []).append(each)
    return topics
