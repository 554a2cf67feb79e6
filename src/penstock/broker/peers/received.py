"""A controller's requests as changes of what this broker knows and does. Pure."""

from collections.abc import Mapping

from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller.change import PartitionChange, StateChange, StoppedReplicas
from penstock.controller.controlled_shutdown import StaleBrokerEpoch
from penstock.controller.orders import DELETED
from penstock.errors import ErrorCode, KafkaError
from penstock.metadata.image import Broker, ClusterImage, ImageDelta, Partition, Topic
from penstock.types import NO_UUID, BrokerId, LeaderEpoch, TopicPartition
from penstock.wire.messages.leader_and_isr import LeaderAndIsrPartitionState, LeaderAndIsrRequest
from penstock.wire.messages.stop_replica import StopReplicaRequest
from penstock.wire.messages.update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
)

UNKNOWN_EPOCH = -1


class StaleControllerEpoch(KafkaError):
    """Another controller was elected since."""

    code = ErrorCode.STALE_CONTROLLER_EPOCH


def check_epochs(
    request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest,
    image: ClusterImage,
    broker_epoch: int,
) -> None:
    """Refuse what an outrun controller says, or what was said to an earlier life of this broker."""
    if request.broker_epoch != UNKNOWN_EPOCH and request.broker_epoch < broker_epoch:
        raise StaleBrokerEpoch(f"this broker is in epoch {broker_epoch}")
    if request.controller_epoch < image.controller_epoch:
        raise StaleControllerEpoch(f"the controller is in epoch {image.controller_epoch}")


def office_of(
    request: LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest,
) -> ImageDelta:
    """Who speaks is the controller."""
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


def _replica(state: LeaderAndIsrPartitionState) -> Partition:
    return Partition(
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


def metadata_change(request: UpdateMetadataRequest, image: ClusterImage) -> StateChange:
    """The image as the controller has it. Of partitions that go, nothing stops here yet: others
    must hear all the same that they are gone.
    """
    changed: dict[str, Topic | None] = {}
    gone: list[StoppedReplicas] = []
    for topic in request.topic_states:
        known = image.topics.get(topic.topic_name)
        partitions: dict[int, Partition] = (
            dict(known.partitions) if known is not None and known.id == topic.topic_id else {}
        )
        for each in topic.partition_states:
            if each.leader == DELETED:
                partitions.pop(each.partition_index, None)
                where = TopicPartition(topic.topic_name, each.partition_index)
                gone.append(StoppedReplicas(where, topic.topic_id, ()))
            else:
                before = partitions.get(each.partition_index)
                partitions[each.partition_index] = _told(each, before)
        changed[topic.topic_name] = (
            Topic(topic.topic_name, topic.topic_id, partitions) if partitions else None
        )
    office = office_of(request)
    delta = ImageDelta(
        brokers=_brokers(request.live_brokers, image.brokers),
        topics=changed,
        topic_configs={name: None for name, topic in changed.items() if topic is None},
        controller=office.controller,
        controller_epoch=office.controller_epoch,
    )
    return StateChange(image=image.apply(delta), stopped=tuple(gone))


def _told(state: UpdateMetadataPartitionState, before: Partition | None) -> Partition:
    """What a partition is now; of a move the request says nothing."""
    return Partition(
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
    """Those that have changed; the epochs of others are the controller's business."""
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
