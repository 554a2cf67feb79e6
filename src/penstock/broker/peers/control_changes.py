"""Translates control requests into state changes of this broker. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller.control_requests import LEADER_DURING_DELETE
from penstock.controller.controlled_shutdown import StaleBrokerEpoch
from penstock.controller.state_change import PartitionChange, StateChange, StoppedReplicas
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import Broker, ClusterImage, ImageDelta, PartitionRegistration, Topic
from penstock.types import NO_UUID, BrokerId, LeaderEpoch, TopicPartition, Uuid
from penstock.wire.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from penstock.wire.messages.stop_replica import StopReplicaRequest
from penstock.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)

UNKNOWN_EPOCH = -1


class StaleControllerEpoch(KafkaError):
    """The request's controller has been replaced: a newer controller epoch is known."""

    code = ErrorCode.STALE_CONTROLLER_EPOCH


def check_epochs(
    request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest,
    image: ClusterImage,
    broker_epoch: int,
) -> None:
    """Refuse requests of a former controller, or for an earlier registration of this broker."""
    if request.broker_epoch != UNKNOWN_EPOCH and request.broker_epoch < broker_epoch:
        raise StaleBrokerEpoch(f"this broker is in epoch {broker_epoch}")
    if request.controller_epoch < image.controller_epoch:
        raise StaleControllerEpoch(f"the controller is in epoch {image.controller_epoch}")


def controller_of(
    request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest,
) -> ImageDelta:
    """The delta that makes the sender the controller."""
    return ImageDelta(
        controller=BrokerId(request.controller_id), controller_epoch=request.controller_epoch
    )


def replicas_of(request: LeaderAndIsrRequest) -> list[PartitionChange]:
    return [
        PartitionChange(
            TopicPartition(topic.topic_name, each.partition_index),
            topic.topic_id,
            _replica(each),
            is_new=each.is_new,
        )
        for topic in request.topic_states
        for each in topic.partition_states
    ]


def _replica(state: LeaderAndIsrPartitionState) -> PartitionRegistration:
    return PartitionRegistration(
        tuple(map(BrokerId, state.replicas)),
        tuple(map(BrokerId, state.isr)),
        BrokerId(state.leader),
        LeaderEpoch(state.leader_epoch),
        state.partition_epoch,
        state.controller_epoch,
        adding_replicas=tuple(map(BrokerId, state.adding_replicas)),
        removing_replicas=tuple(map(BrokerId, state.removing_replicas)),
        recovering=state.leader_recovery_state == 1,
    )


def new_topics(
    changes: Iterable[PartitionChange], image: ClusterImage, configs_read: Mapping[str, Uuid]
) -> set[str]:
    """Topics whose settings must be read: the image has none, or those of a deleted topic.

    `configs_read` has topics whose settings were read before the image has the topics.
    """
    return {
        each.topic_partition.topic
        for each in changes
        if each.topic_partition.topic not in image.topic_configs
        or configs_read.get(each.topic_partition.topic, _id(image, each.topic_partition.topic))
        != each.topic_id
    }


def still_current(delta: ImageDelta, read_at: ClusterImage, image: ClusterImage) -> ImageDelta:
    """The delta without topics and topic settings that have changed since `read_at`."""
    return replace(
        delta,
        topics={
            name: topic
            for name, topic in delta.topics.items()
            if _id(image, name) == _id(read_at, name)
        },
        topic_configs={
            name: configs
            for name, configs in delta.topic_configs.items()
            if image.topic_configs.get(name) is read_at.topic_configs.get(name)
            and _id(image, name) == _id(read_at, name)
        },
    )


def _id(image: ClusterImage, name: str) -> Uuid | None:
    known = image.topics.get(name)
    return None if known is None else known.id


def deleted_partitions(delta: ImageDelta, image: ClusterImage) -> tuple[StoppedReplicas, ...]:
    """The partitions of deleted topics, so that coordinators are notified of the deletion."""
    return tuple(
        StoppedReplicas(TopicPartition(name, index), topic.id, ())
        for name, after in delta.topics.items()
        if after is None and (topic := image.topics.get(name)) is not None
        for index in topic.partitions
    )


def stopped_by(request: StopReplicaRequest, broker: BrokerId) -> list[StoppedReplicas]:
    return [
        StoppedReplicas(
            TopicPartition(topic.topic_name, each.partition_index),
            NO_UUID,
            (broker,),
            delete=each.delete_partition,
            leader_epoch=each.leader_epoch,
        )
        for topic in request.topic_states
        for each in topic.partition_states
    ]


def metadata_change(
    request: UpdateMetadataRequest, image: ClusterImage, configs_read: Mapping[str, Uuid]
) -> StateChange:
    """The image with the controller's changes. Deleted partitions are listed without replicas: no
    replica stops here yet, but coordinators must be notified of the deletion.

    Settings belong to a topic, not to its name: a topic created again does not inherit them.
    `configs_read` has topics whose settings were read before.
    """
    changed: dict[str, Topic | None] = {}
    deleted: list[StoppedReplicas] = []
    for topic in request.topic_states:
        known = image.topics.get(topic.topic_name)
        partitions: dict[int, PartitionRegistration] = (
            dict(known.partitions) if known is not None and known.id == topic.topic_id else {}
        )
        for each in topic.partition_states:
            if each.leader == LEADER_DURING_DELETE:
                partitions.pop(each.partition_index, None)
                topic_partition = TopicPartition(topic.topic_name, each.partition_index)
                deleted.append(StoppedReplicas(topic_partition, topic.topic_id, ()))
            else:
                before = partitions.get(each.partition_index)
                partitions[each.partition_index] = _partition(each, before)
        changed[topic.topic_name] = (
            Topic(topic.topic_name, topic.topic_id, partitions) if partitions else None
        )
    controller = controller_of(request)
    delta = ImageDelta(
        brokers=_brokers(request.live_brokers, image.brokers),
        topics=changed,
        topic_configs={
            topic.topic_name: None
            for topic in request.topic_states
            if changed[topic.topic_name] is None
            or configs_read.get(topic.topic_name, _id(image, topic.topic_name)) != topic.topic_id
        },
        controller=controller.controller,
        controller_epoch=controller.controller_epoch,
    )
    return StateChange(image=image.apply(delta), stopped=tuple(deleted))


def _partition(
    state: UpdateMetadataPartitionState, before: PartitionRegistration | None
) -> PartitionRegistration:
    """The partition's state. Keeps the reassignment of `before`, which the request lacks."""
    return PartitionRegistration(
        tuple(map(BrokerId, state.replicas)),
        tuple(map(BrokerId, state.isr)),
        BrokerId(state.leader),
        LeaderEpoch(state.leader_epoch),
        state.zk_version,
        state.controller_epoch,
        offline_replicas=tuple(map(BrokerId, state.offline_replicas)),
        adding_replicas=before.adding_replicas if before is not None else (),
        removing_replicas=before.removing_replicas if before is not None else (),
    )


def _brokers(
    live: list[UpdateMetadataBroker], known: Mapping[BrokerId, Broker]
) -> dict[BrokerId, Broker | None]:
    """The brokers that have changed. Only the controller knows broker epochs."""
    now = {BrokerId(each.id): _broker(each) for each in live}
    gone: dict[BrokerId, Broker | None] = {id_: None for id_ in known if id_ not in now}
    return gone | {id_: broker for id_, broker in now.items() if known.get(id_) != broker}


def _broker(broker: UpdateMetadataBroker) -> Broker:
    protocols = tuple(SecurityProtocol)
    return Broker(
        BrokerId(broker.id),
        UNKNOWN_EPOCH,
        tuple(
            Endpoint(each.listener, protocols[each.security_protocol], each.host, each.port)
            for each in broker.endpoints
        ),
        broker.rack,
    )
