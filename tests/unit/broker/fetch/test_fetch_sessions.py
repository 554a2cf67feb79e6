"""Incremental fetch sessions (KIP-227) on the leader's side."""

from collections.abc import Iterable
from itertools import count, repeat
from typing import Any

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
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)


def sessions(slots: int = 10, times_ms: Iterable[int] = repeat(0)) -> FetchSessions:
    return FetchSessions(slots, count(1).__next__, iter(times_ms).__next__)


def request(
    session_id: int,
    epoch: int,
    *indexes: int,
    forget: tuple[int, ...] = (),
    leader_epoch: int = -1,
) -> FetchRequest:
    parts = [
        FetchPartition(partition=i, fetch_offset=10 * epoch, current_leader_epoch=leader_epoch)
        for i in indexes
    ]
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


def test_a_session_remembers_partitions_and_applies_changes() -> None:
    kept = sessions()
    first = begin(kept, request(0, 0, 0, 1, 2))
    assert not first.is_incremental
    second = begin(kept, request(first.id, 1, 1, forget=(0,)))
    assert second is first
    assert second.is_incremental
    assert [(w.index, w.fetch_offset) for w in second.partitions.values()] == [(1, 10), (2, 0)]


def test_an_unknown_session_a_skipped_epoch_and_a_switch_to_topic_ids_are_refused() -> None:
    kept = sessions()
    with pytest.raises(FetchSessionIdNotFound):
        begin(kept, request(99, 1))
    session = begin(kept, request(0, 0, 0))
    with pytest.raises(InvalidFetchSessionEpoch):
        begin(kept, request(session.id, 2))
    with pytest.raises(FetchSessionTopicIdError):
        begin(kept, request(session.id, 1), uses_ids=True)


def test_epochs_0_and_minus_1_close_the_named_session() -> None:
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


def test_full_slots_are_not_scanned_on_every_fetch() -> None:
    """There may be thousands of clients without a session, and each requests one every time."""

    class Counted(dict[int, FetchSession]):
        looked = 0

        def values(self) -> Any:
            Counted.looked += 1
            return super().values()

    kept = sessions(3, [0, 1, 2, *repeat(9, 100), EVICTION_MS, EVICTION_MS + 1])
    for _ in range(3):
        begin(kept, request(0, 0, 0))
    kept._sessions = Counted(kept._sessions)
    assert {begin(kept, request(0, 0, 0)).id for _ in range(100)} == {0}
    assert Counted.looked == 1
    assert [begin(kept, request(0, 0, 0)).id > 0 for _ in range(2)] == [True, True]


def test_no_session_has_more_partitions_than_the_cluster() -> None:
    exist = ALWAYS_KEPT + 10
    kept = FetchSessions(10, count(1).__next__, lambda: 0, lambda: exist)
    assert begin(kept, request(0, 0, *range(exist + 1))).id == 0
    session = begin(kept, request(0, 0, *range(exist - 1)))
    assert begin(kept, request(session.id, 1, exist)) is session
    with pytest.raises(FetchSessionIdNotFound):
        begin(kept, request(session.id, 2, exist + 1))
    assert len(kept) == 0
    exist = 0  # partitions that a client learned of first, or that were deleted since, are accepted
    session = begin(kept, request(0, 0, *range(ALWAYS_KEPT)))
    assert begin(kept, request(session.id, 1, 0)) is session


def test_a_partition_that_had_data_is_read_last_next_time() -> None:
    kept = sessions()
    session = begin(kept, request(0, 0, 0, 1, 2))
    begin(kept, request(session.id, 1))
    first = next(iter(session.partitions.values()))
    session.sent(first, PartitionData(), has_records=True)
    assert [w.index for w in session.partitions.values()] == [1, 2, 0]


@pytest.mark.parametrize(
    ("next_epoch", "diverging", "remembered"), [(5, -1, 17), (6, -1, -1), (5, 3, -1)]
)
def test_a_high_watermark_that_a_follower_ignores_counts_as_not_sent(
    next_epoch: int, diverging: int, remembered: int
) -> None:
    """A follower ignores responses of an epoch it has left, and a diverging log is truncated. The
    high watermark may not move again for long.
    """
    kept = sessions()
    session = begin(kept, request(0, 0, 0, leader_epoch=5))
    (sent,) = session.partitions.values()
    data = PartitionData(
        high_watermark=17,
        log_start_offset=0,
        diverging_epoch=EpochEndOffset(epoch=diverging, end_offset=diverging),
    )
    session.sent(sent, data, has_records=False)
    begin(kept, request(session.id, 1, 0, leader_epoch=next_epoch))
    (cached,) = session.partitions.values()
    assert cached.sent_high_watermark == remembered


def test_a_session_holds_no_names_that_are_too_long_for_topics() -> None:
    """A thousand sessions with a thousand names of 32 KB would fill the memory."""
    kept = sessions()
    named = [FetchTopic(topic="t" * 250, partitions=[FetchPartition(partition=0)])]
    session = begin(kept, FetchRequest(session_epoch=0, topics=named))
    assert (session.id, len(session.partitions), len(kept)) == (0, 1, 0)
    session = begin(kept, request(0, 0, 0))
    assert (session.id, len(kept)) == (1, 1)
    with pytest.raises(FetchSessionIdNotFound):
        begin(kept, FetchRequest(session_id=1, session_epoch=1, topics=named))
    assert len(kept) == 0
