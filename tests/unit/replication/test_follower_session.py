"""Incremental fetch sessions (KIP-227) on the follower's side."""

from penstock.replication.fetch_session import MAX_EPOCH, FollowerSession, PartitionFetch
from penstock.types import TopicPartition, Uuid
from penstock.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
ID, OTHER_ID = Uuid(bytes(15) + b"\1"), Uuid(bytes(15) + b"\2")


def asked(index: int, offset: int, topic_id: Uuid = ID) -> PartitionFetch:
    return PartitionFetch(topic_id, FetchPartition(partition=index, fetch_offset=offset))


def topic(*each: PartitionFetch, topic_id: Uuid = ID) -> FetchTopic:
    return FetchTopic(topic="t", topic_id=topic_id, partitions=[one.request for one in each])


def forgotten(*indexes: int) -> ForgottenTopic:
    return ForgottenTopic(topic="t", topic_id=ID, partitions=list(indexes))


def test_all_partitions_are_sent_once_and_then_only_changes() -> None:
    session = FollowerSession()
    reported = session.next({FIRST: asked(0, 5), SECOND: asked(1, 7)})
    assert (reported.session_id, reported.session_epoch) == (0, 0)
    assert reported.topics == [topic(asked(0, 5), asked(1, 7))]
    session.answered(99)
    reported = session.next({FIRST: asked(0, 5), SECOND: asked(1, 8)})
    assert (reported.session_id, reported.session_epoch) == (99, 1)
    assert (reported.topics, reported.forgotten) == ([topic(asked(1, 8))], [])
    session.answered(99)
    reported = session.next({SECOND: asked(1, 8)})
    assert reported.session_epoch == 2
    assert (reported.topics, reported.forgotten) == ([], [forgotten(0)])


def test_a_recreated_topic_is_forgotten_and_added() -> None:
    session = FollowerSession()
    session.next({FIRST: asked(0, 5)})
    session.answered(99)
    reported = session.next({FIRST: asked(0, 5, OTHER_ID)})
    assert reported.topics == [topic(asked(0, 5), topic_id=OTHER_ID)]
    assert reported.forgotten == [forgotten(0)]


def test_without_a_session_all_partitions_are_sent_each_time() -> None:
    session = FollowerSession()
    for _ in range(2):
        reported = session.next({FIRST: asked(0, 5)})
        assert (reported.session_id, reported.session_epoch, len(reported.topics)) == (0, 0, 1)
        session.answered(0)


def test_a_lost_session_is_replaced_by_a_new_one() -> None:
    session = FollowerSession()
    session.next({FIRST: asked(0, 5), SECOND: asked(1, 7)})
    session.answered(99)
    session.reset()
    reported = session.next({FIRST: asked(0, 5)})
    assert (reported.session_id, reported.session_epoch) == (0, 0)
    assert (reported.topics, reported.forgotten) == ([topic(asked(0, 5))], [])


def test_epochs_wrap_to_one() -> None:
    session = FollowerSession()
    session._epoch = MAX_EPOCH
    session.answered(99)
    assert session.next({}).session_epoch == 1
