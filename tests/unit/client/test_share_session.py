"""The requests of a share session, as values."""

from penstock.client.share_session import LAST_EPOCH, FetchLimits, ShareSessionHandler, batches
from penstock.types import TopicIdPartition, Uuid
from penstock.wire.enums import AcknowledgeType
from penstock.wire.messages.share_acknowledge import AcknowledgementBatch

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
LIMITS = FetchLimits(records=5, wait_ms=0)
TOPIC, OTHER = Uuid(b"a" * 16), Uuid(b"b" * 16)


def test_adjacent_offsets_with_one_decision_are_one_batch() -> None:
    decided = {7: ACCEPT, 3: ACCEPT, 4: ACCEPT, 5: REJECT, 6: RELEASE}
    assert batches(decided) == [
        AcknowledgementBatch(3, 4, [ACCEPT]),
        AcknowledgementBatch(5, 5, [REJECT]),
        AcknowledgementBatch(6, 6, [RELEASE]),
        AcknowledgementBatch(7, 7, [ACCEPT]),
    ]
    assert batches({}) == []


def test_a_session_sends_only_changes() -> None:
    session = ShareSessionHandler("g", "m")

    def fetch(*partitions: TopicIdPartition) -> tuple[int, list[Uuid], list[Uuid]]:
        request = session.fetch(partitions, LIMITS)
        named = [each.topic_id for each in request.topics]
        forgotten = [each.topic_id for each in request.forgotten_topics_data]
        return request.share_session_epoch, named, forgotten

    assert fetch(TopicIdPartition(TOPIC, 0)) == (0, [TOPIC], [])
    assert fetch(TopicIdPartition(TOPIC, 0)) == (1, [], [])
    assert fetch(TopicIdPartition(OTHER, 0)) == (2, [OTHER], [TOPIC])


def test_acknowledgements_advance_the_epoch_too_and_the_last_closes_the_session() -> None:
    session = ShareSessionHandler("g", "m")
    session.fetch([TopicIdPartition(TOPIC, 1)], LIMITS)
    reported = session.acknowledge({TopicIdPartition(TOPIC, 1): batches({4: REJECT})})
    assert reported.share_session_epoch == 1
    (topic,) = reported.topics
    (partition,) = topic.partitions
    assert (topic.topic_id, partition.partition_index) == (TOPIC, 1)
    assert partition.acknowledgement_batches == [AcknowledgementBatch(4, 4, [REJECT])]
    assert session.acknowledge({}, is_last=True).share_session_epoch == -1


def test_after_the_largest_epoch_comes_1_because_0_opens_a_session() -> None:
    session = ShareSessionHandler("g", "m")
    session._epoch = LAST_EPOCH
    assert [session.fetch([], LIMITS).share_session_epoch for _ in range(2)] == [LAST_EPOCH, 1]
