"""The control requests that carry a state change to each broker. Pure.

They are LeaderAndIsr, UpdateMetadata and StopReplica, in this order, as Kafka 3.9 sends them: a
replica exists before clients learn of it, and clients still know it while it stops. A broker that
has just joined gets UpdateMetadata first, because Kafka does not follow a leader that it does not
know. A request says nothing about partitions that it does not name.
"""

from collections.abc import Iterable

from penstock.controller.state_change import (
    PartitionChange,
    StateChange,
    StoppedReplicas,
    all_partitions,
)
from penstock.metadata.image import Broker, ClusterImage, PartitionRegistration
from penstock.metadata.records import NO_LEADER
from penstock.types import BrokerId, Uuid
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

LEADER_DURING_DELETE = BrokerId(-2)
"""The leader of a partition that is being deleted, in UpdateMetadata."""

PARTITIONS_PER_REQUEST = 1000
"""Larger changes are divided, so that the broker does other work in between."""

ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest


def control_requests(change: StateChange, broker: Broker, listener: str) -> list[ControlRequest]:
    """The requests for one live broker. `listener` is the inter-broker listener."""
    image = change.image
    if broker.id in change.joined:
        known = {each.topic_partition: each for each in all_partitions(image)}
        known |= {each.topic_partition: each for each in change.partitions}
        changed, announced = list(known.values()), [*known.values(), *_deleted(change)]
    else:
        changed, announced = list(change.partitions), list(_announced(change))
    replicas = [each for each in changed if broker.id in each.state.replicas]
    stopped = [each for each in change.stopped if broker.id in each.replicas]
    leader_and_isr = _leader_and_isr(image, broker, replicas, listener)
    metadata = _update_metadata(image, broker, announced)
    stops = _stop_replica(image, broker, stopped)
    if broker.id in change.joined:
        return [*metadata, *leader_and_isr, *stops, _end_of_full_set(image, broker)]
    return [*leader_and_isr, *metadata, *stops]


def _end_of_full_set(image: ClusterImage, broker: Broker) -> LeaderAndIsrRequest:
    """Ends the full set that a joining broker receives: a LeaderAndIsr without partitions.

    Replicas that the broker holds and that the set did not name are strays. The request's own
    `type` field means a full set within one request only. Kafka has no such end, and ignores it.
    """
    return LeaderAndIsrRequest(
        controller_id=image.controller,
        controller_epoch=image.controller_epoch,
        broker_epoch=broker.epoch,
    )


def _announced(change: StateChange) -> Iterable[PartitionChange]:
    image = change.image
    changed = {each.topic_partition: each for each in change.partitions}
    for topic_partition in change.metadata_only:
        topic, state = image.topics.get(topic_partition.topic), image.partition(topic_partition)
        if topic is not None and state is not None:
            changed[topic_partition] = PartitionChange(topic_partition, topic.id, state)
    yield from changed.values()
    yield from _deleted(change)


def _deleted(change: StateChange) -> Iterable[PartitionChange]:
    image = change.image
    for stopped in change.stopped:
        if stopped.topic_partition.topic not in image.topics:
            deleted = PartitionRegistration(stopped.replicas, leader=LEADER_DURING_DELETE)
            yield PartitionChange(stopped.topic_partition, stopped.topic_id, deleted)


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


def _replica_state(change: PartitionChange, broker: BrokerId) -> LeaderAndIsrPartitionState:
    state = change.state
    return LeaderAndIsrPartitionState(
        partition_index=change.topic_partition.partition,
        controller_epoch=state.controller_epoch,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        partition_epoch=state.partition_epoch,
        replicas=list(state.replicas),
        adding_replicas=list(state.adding_replicas),
        removing_replicas=list(state.removing_replicas),
        is_new=change.is_new_on(broker),
        leader_recovery_state=int(state.recovering),
    )


def _update_metadata(
    image: ClusterImage, broker: Broker, partitions: list[PartitionChange]
) -> Iterable[UpdateMetadataRequest]:
    live = [_live(each) for each in image.brokers.values()]
    for some in _portions(partitions) or [
        []
    ]:  # without partitions it tells which brokers are alive
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


def _metadata_state(change: PartitionChange) -> UpdateMetadataPartitionState:
    state = change.state
    return UpdateMetadataPartitionState(
        partition_index=change.topic_partition.partition,
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
        topics.setdefault(each.topic_partition.topic, []).append(
            StopReplicaPartitionState(
                partition_index=each.topic_partition.partition,
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
        partitions[start : start + PARTITIONS_PER_REQUEST]
        for start in range(0, len(partitions), PARTITIONS_PER_REQUEST)
    ]


def _by_topic(
    partitions: Iterable[PartitionChange],
) -> dict[tuple[str, Uuid], list[PartitionChange]]:
    topics: dict[tuple[str, Uuid], list[PartitionChange]] = {}
    for each in partitions:
        topics.setdefault((each.topic_partition.topic, each.topic_id), []).append(each)
    return topics
