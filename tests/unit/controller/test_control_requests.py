"""The control requests for each broker, and what a broker makes of them."""

from msgspec.structs import replace

from penstock.broker.peers.control_changes import metadata_change, replicas_of, stopped_by
from penstock.config.listener import Endpoint, SecurityProtocol
from penstock.controller.control_requests import ControlRequest, control_requests
from penstock.controller.state_change import PartitionChange, StateChange, StoppedReplicas
from penstock.metadata.image import Broker, ClusterImage, ImageDelta, PartitionRegistration, Topic
from penstock.types import BrokerId, LeaderEpoch, TopicPartition, Uuid
from penstock.wire.messages.leader_and_isr import LeaderAndIsrRequest
from penstock.wire.messages.stop_replica import StopReplicaRequest
from penstock.wire.messages.update_metadata import UpdateMetadataRequest

TOPIC_ID = Uuid(bytes(range(16)))
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def broker(number: int) -> Broker:
    address = Endpoint("INTERNAL", SecurityProtocol.SASL_SSL, "10.0.0.1", 9000 + number)
    return Broker(BrokerId(number), 100 + number, (address,), f"rack-{number}")


def partition(leader: int, replicas: tuple[int, ...]) -> PartitionRegistration:
    ids = tuple(map(BrokerId, replicas))
    return PartitionRegistration(ids, ids, BrokerId(leader), LeaderEpoch(3), 5, 2)


IMAGE = ClusterImage(
    cluster_id="c",
    controller=BrokerId(0),
    controller_epoch=7,
    brokers={BrokerId(number): broker(number) for number in range(3)},
    topics={
        "t": Topic("t", TOPIC_ID, {0: partition(0, (0, 1)), 1: partition(1, (1, 2))}),
    },
    topic_names={TOPIC_ID: "t"},
)


def change_of(topic_partition: TopicPartition, *, is_new: bool = False) -> PartitionChange:
    state = IMAGE.partition(topic_partition)
    assert state is not None
    return PartitionChange(topic_partition, TOPIC_ID, state, is_new=is_new)


def kinds(sent: list[ControlRequest]) -> list[type[ControlRequest]]:
    return [type(each) for each in sent]


def test_replicas_get_leader_and_isr_and_every_broker_gets_metadata() -> None:
    change = StateChange(image=IMAGE, partitions=(change_of(FIRST, is_new=True),))
    sent = control_requests(change, broker(1), "INTERNAL")
    assert kinds(sent) == [LeaderAndIsrRequest, UpdateMetadataRequest]
    assert kinds(control_requests(change, broker(2), "INTERNAL")) == [UpdateMetadataRequest]
    first = sent[0]
    assert isinstance(first, LeaderAndIsrRequest)
    assert (first.controller_id, first.controller_epoch, first.broker_epoch) == (0, 7, 101)
    assert [(each.broker_id, each.port) for each in first.live_leaders] == [(0, 9000)]
    assert replicas_of(first) == [change_of(FIRST, is_new=True)]


def test_a_joining_broker_receives_everything() -> None:
    change = StateChange(image=IMAGE, joined=frozenset({BrokerId(2)}))
    metadata, leads, end = control_requests(change, broker(2), "INTERNAL")
    assert isinstance(leads, LeaderAndIsrRequest)
    assert replicas_of(leads) == [change_of(SECOND)]
    assert isinstance(end, LeaderAndIsrRequest)
    assert replicas_of(end) == [], "this was everything"
    assert (end.controller_id, end.controller_epoch, end.broker_epoch) == (0, 7, 102)
    assert isinstance(metadata, UpdateMetadataRequest)
    learned = metadata_change(metadata, ClusterImage(cluster_id="c"), {}).image
    assert learned.topics == IMAGE.topics
    assert learned.topic_names == IMAGE.topic_names
    assert (learned.controller, learned.controller_epoch) == (0, 7)
    epochless = {each.id: replace(each, epoch=-1) for each in IMAGE.brokers.values()}
    assert learned.brokers == epochless


def test_an_isr_change_is_metadata_only() -> None:
    change = StateChange(image=IMAGE, metadata_only=(FIRST,))
    assert kinds(control_requests(change, broker(0), "INTERNAL")) == [UpdateMetadataRequest]


def test_live_brokers_are_announced_without_partitions() -> None:
    (sent,) = control_requests(StateChange(image=IMAGE), broker(1), "INTERNAL")
    assert isinstance(sent, UpdateMetadataRequest)
    assert (len(sent.live_brokers), sent.topic_states) == (3, [])
    gone = IMAGE.apply(ImageDelta(brokers={BrokerId(2): None}))
    (sent,) = control_requests(StateChange(image=gone), broker(1), "INTERNAL")
    assert isinstance(sent, UpdateMetadataRequest)
    learned = metadata_change(sent, IMAGE, {}).image
    assert set(learned.brokers) == {0, 1}
    # A request says nothing about what it does not name.
    assert learned.topics is IMAGE.topics


def test_an_added_replica_is_new_only_on_its_broker() -> None:
    isr = (BrokerId(0), BrokerId(1))
    state = replace(partition(0, (2, 0, 1)), isr=isr, adding_replicas=(BrokerId(2),))
    change = StateChange(image=IMAGE, partitions=(PartitionChange(FIRST, TOPIC_ID, state),))
    for number, is_new in ((0, False), (1, False), (2, True)):
        first = control_requests(change, broker(number), "INTERNAL")[0]
        assert isinstance(first, LeaderAndIsrRequest)
        assert first.topic_states[0].partition_states[0].is_new == is_new


def test_a_deleted_topic_is_removed_from_metadata_and_its_replicas_are_stopped() -> None:
    gone = IMAGE.apply(ImageDelta(topics={"t": None}))
    stopped = tuple(
        StoppedReplicas(topic_partition, TOPIC_ID, tuple(map(BrokerId, replicas)))
        for topic_partition, replicas in ((FIRST, (0, 1)), (SECOND, (1, 2)))
    )
    change = StateChange(image=gone, stopped=stopped)
    metadata, stop = control_requests(change, broker(2), "INTERNAL")
    assert isinstance(metadata, UpdateMetadataRequest)
    assert isinstance(stop, StopReplicaRequest)
    learned = metadata_change(metadata, IMAGE, {})
    assert learned.image.topics == {}
    assert [each.topic_partition for each in learned.stopped] == [FIRST, SECOND]
    assert all(not each.replicas for each in learned.stopped)  # UpdateMetadata alone stops nothing
    (only,) = stopped_by(stop, BrokerId(2))
    assert (only.topic_partition, only.delete, only.leader_epoch) == (SECOND, True, -2)


def test_large_changes_are_divided() -> None:
    many = {index: partition(0, (0, 1)) for index in range(2500)}
    image = IMAGE.apply(ImageDelta(topics={"t": Topic("t", TOPIC_ID, many)}))
    change = StateChange(image=image, joined=frozenset({BrokerId(1)}))
    sent = control_requests(change, broker(1), "INTERNAL")
    assert kinds(sent) == [UpdateMetadataRequest] * 3 + [LeaderAndIsrRequest] * 4
    learned = ClusterImage()
    for each in sent:
        if isinstance(each, UpdateMetadataRequest):
            learned = metadata_change(each, learned, {}).image
    assert learned.topics == image.topics
