"""Incremental fetch sessions (KIP-227) on the leader's side."""

from collections.abc import Iterable
from itertools import count, repeat

import pytest

from penstock.broker.fetch.sessions import (
    ALWAYS_KEPT,
    EVICTION_MS,
    FetchSession,
    FetchSessionIdNotFound,
    FetchSessions,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
)
from penstock.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)


def sessions(slots: int = 10, times_ms: Iterable[int] = repeat(0)) -> FetchSessions:
    return FetchSessions(slots, count(1).__next__, iter(times_ms).__next__)


def request(
    session_id: int, epoch: int, *indexes: int, forget: tuple[int, ...] = ()
) -> FetchRequest:
    parts = [FetchPartition(partition=i, fetch_offset=10 * epoch) for i in indexes]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic(topic="t", partitions=parts)] if parts else [],
        forgotten_topics_data=[ForgottenTopic(topic="t", partitions=list(forget))]
        if forget
        else [],
    )


def begin(sessions: FetchSessions, asked: FetchRequest, *, uses_ids: bool = False) -> FetchSession:
    return sessions.begin(asked, uses_ids=uses_ids)


def test_a_request_without_session_stands_alone() -> None:
    kept = sessions()
    session = begin(kept, request(0, -1, 0, 1))
    assert (session.id, len(session.partitions), len(kept)) == (0, 2, 0)


def test_a_session_remembers_partitions_and_takes_changes() -> None:
    kept = sessions()
    first = begin(kept, request(0, 0, 0, 1, 2))
    assert not first.is_incremental
    second = begin(kept, request(first.id, 1, 1, forget=(0,)))
    assert second is first
    assert second.is_incremental
    assert [(w.index, w.fetch_offset) for w in second.partitions.values()] == [(1, 10), (2, 0)]


def test_an_unknown_session_a_lost_request_and_a_change_of_naming_are_refused() -> None:
    kept = sessions()
    with pytest.raises(FetchSessionIdNotFound):
        begin(kept, request(99, 1))
    session = begin(kept, request(0, 0, 0))
    with pytest.raises(InvalidFetchSessionEpoch):
        begin(kept, request(session.id, 2))
    with pytest.raises(FetchSessionTopicIdError):
        begin(kept, request(session.id, 1), uses_ids=True)


def test_epoch_0_and_minus_1_close_the_session_they_name() -> None:
    kept = sessions()
    session = begin(kept, request(0, 0, 0))
    begin(kept, request(session.id, -1))
    with pytest.raises(FetchSessionIdNotFound):
        begin(kept, request(session.id, 1))


def test_a_session_without_partitions_left_is_closed() -> None:
    kept = sessions()
    session = begin(kept, request(0, 0, 0))
    assert begin(kept, request(session.id, 1, forget=(0,))).id == 0
    assert len(kept) == 0


def test_when_all_slots_are_taken_only_an_old_session_makes_room() -> None:
    kept = sessions(1, [0, EVICTION_MS - 1, EVICTION_MS, EVICTION_MS])
    old = begin(kept, request(0, 0, 0))
    assert begin(kept, request(0, 0, 1)).id == 0
    new = begin(kept, request(0, 0, 1))
    assert new.id not in {0, old.id}
    with pytest.raises(FetchSessionIdNotFound):
        begin(kept, request(old.id, 1))


def test_no_session_has_more_partitions_than_the_cluster() -> None:
    exist = ALWAYS_KEPT + 10
    kept = FetchSessions(10, count(1).__next__, lambda: 0, lambda: exist)
    assert begin(kept, request(0, 0, *range(exist + 1))).id == 0
    session = begin(kept, request(0, 0, *range(exist - 1)))
    assert begin(kept, request(session.id, 1, exist)) is session
    with pytest.raises(FetchSessionIdNotFound):
        begin(kept, request(session.id, 2, exist + 1))
    assert len(kept) == 0
    exist = 0  # what a client knows first, or what was deleted since, is no reason to refuse
    session = begin(kept, request(0, 0, *range(ALWAYS_KEPT)))
    assert begin(kept, request(session.id, 1, 0)) is session


def test_a_partition_that_had_data_is_read_last_next_time() -> None:
    kept = sessions()
    session = begin(kept, request(0, 0, 0, 1, 2))
    begin(kept, request(session.id, 1))
    first = next(iter(session.partitions.values()))
    session.sent(first, PartitionData(), has_records=True)
    assert [w.index for w in session.partitions.values()] == [1, 2, 0]
