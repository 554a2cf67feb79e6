"""Where a log has other records than those that were read before."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.client.cluster import Client
from penstock.client.errors import ConnectionFailed, RequestTimedOut
from penstock.client.leader_logs import LeaderEpochStart, LeaderLog
from penstock.clock import SystemClock
from penstock.config.delay_route import route_of
from penstock.retry import service as service_module
from penstock.retry.due_records import DueRecords
from penstock.retry.history import HEADER, EpochRun, History, UnreadableState
from penstock.retry.partition import DelayPartition
from penstock.retry.progress import CHUNK, Bitmaps, Outcome, Progress
from penstock.retry.service import DelayService, LogShortened
from penstock.retry.state_topic import state_records
from penstock.retry.store.index import Entry, IndexKey
from penstock.retry.store.sqlite import SqliteIndex
from penstock.retry.topics import TopicWaits
from penstock.types import Offset, TopicPartition, Uuid
from support.retry.moving import AllThere

KEY = IndexKey(Uuid(bytes(16)), 0)
LATER = TopicPartition("later", 0)
READ = [EpochRun(1, 0, 39), EpochRun(2, 40, 49), EpochRun(3, 51, 99)]
"""Offset 50 was a transaction marker of epoch 2 or 3."""


def log(end: int, *starts: tuple[int, int], epoch: int | None = None) -> LeaderLog:
    known = [LeaderEpochStart(*each) for each in starts]
    return LeaderLog(known[-1].epoch if epoch is None else epoch, Offset(end), known)


@pytest.mark.parametrize(
    ("present", "lost"),
    [
        (log(100, (1, 0), (2, 40), (3, 50)), []),
        (log(100, (1, 0), (2, 40), (3, 51)), []),
        (log(300, (1, 0), (2, 40), (3, 50), (4, 100), (9, 150)), []),
        (log(100, (1, 0), (2, 40), (3, 50), (4, 100)), []),
        (log(100, (3, 70)), []),  # the beginning was deleted
        (log(100, (4, 100)), []),
        (log(80, (1, 0), (2, 40), (3, 50)), [range(80, 100)]),
        (log(200, (1, 0), (2, 40), (3, 50), (4, 80)), [range(80, 100)]),
        (log(90, (1, 0), (2, 40), (3, 50), (4, 80)), [range(80, 90), range(90, 100)]),
        # It never had the records of epochs 3 and 2.
        (log(200, (1, 0), (4, 70)), [range(40, 50), range(51, 70), range(70, 100)]),
        (log(200, (4, 0)), [range(40), range(40, 50), range(51, 100)]),
        (log(0, (4, 0)), [range(40), range(40, 50), range(51, 100)]),
    ],
)
def test_lost_ranges_are_found(present: LeaderLog, lost: list[range]) -> None:
    assert History(READ).lost(present) == lost


def test_records_read_extend_the_runs() -> None:
    history = History()
    for epoch, offset in [(-1, 3), (2, 5), (2, 6), (2, 4), (5, 9), (2, 6), (5, 10)]:
        history.seen(epoch, offset, offset)
    assert history.runs == [EpochRun(2, 5, 6), EpochRun(5, 9, 10)]
    history.seen(7, 6, 6)  # replaced runs stay until the leader reports everything that was lost
    assert history.runs == [EpochRun(2, 5, 6), EpochRun(5, 9, 10)]
    history.seen(7, 11, 11)
    assert history.runs == [EpochRun(2, 5, 6), EpochRun(5, 9, 10), EpochRun(7, 11, 11)]


def test_a_log_is_adopted_up_to_the_position_read() -> None:
    history = History(READ)
    history.adopt(log(300, (1, 0), (2, 40), (3, 50), (9, 150)), 120)
    assert history.runs == [EpochRun(1, 0, 39), EpochRun(2, 40, 49), EpochRun(3, 50, 119)]
    assert (history.latest, history.end) == (3, 120)


def test_a_history_is_encoded_and_decoded() -> None:
    history = History(READ, rewinds=2)
    assert history.encode() == b"1 2 1:0-39 2:40-49 3:51-99"
    found = History.decode(history.encode())
    assert (found.runs, found.rewinds) == (READ, 2)
    for value, says in ((b"2 of another form", "newer"), (b"", "broken"), (b"1 x", "broken")):
        with pytest.raises(UnreadableState, match=says):
            History.decode(value)


def test_a_floor_has_a_header_once_epochs_are_known() -> None:
    (unknown,) = state_records(KEY, Progress(Offset(7), {}))
    assert not unknown.headers, "as former versions wrote it"
    (known,) = state_records(KEY, Progress(Offset(7), {}, History(READ)))
    assert (known.value, dict(known.headers)) == (b"7", {HEADER: b"1 0 1:0-39 2:40-49 3:51-99"})


def test_completed_records_outside_the_lost_range_stay_completed() -> None:
    """Also below the former floor, because the log still has them."""
    lost, end = range(100, 120), CHUNK + 50
    bits = Bitmaps(delivered=0b1, cancelled=0b100)  # of the floor's chunk
    progress = Progress(Offset(end), {1: bits}, History([EpochRun(1, 0, end - 1)]))
    progress.rewind([lost])
    state = dict(progress.staged_values())
    assert progress.staged_floor() == 100
    progress.commit()
    chunks = {chunk: Bitmaps.decode(value) for chunk, value in state.items() if value is not None}
    for found in (progress, Progress(Offset(100), chunks)):
        assert {each for each in range(end + 9) if not found.is_done(each)} == {
            *lost,
            *range(end, end + 9),
        }
        assert found.outcome(CHUNK + 2) is Outcome.CANCELLED
        assert found.outcome(CHUNK + 3) is Outcome.DELIVERED


def test_a_log_that_lost_nearly_everything_keeps_few_chunks() -> None:
    """The state has a record for each chunk with something left, and for no other."""
    end = 1000 * CHUNK
    progress = Progress(Offset(end), {}, History([EpochRun(1, 0, end - 1)]))
    progress.rewind([range(end - CHUNK - 10), range(end - 5, end)])
    state = dict(progress.staged_values())
    assert sorted(state) == [998, 999]
    assert progress.staged_floor() == 0
    progress.commit()
    left = {each for each in range(end - 3 * CHUNK, end) if progress.is_done(each)}
    assert left == set(range(end - CHUNK - 10, end - 5))


# The service, without brokers.


def opened(progress: Progress) -> DelayPartition:
    route = route_of("later", {"penstock.delay.to": "to"})
    assert route is not None
    return DelayPartition(LATER, KEY, route, progress)


def service(index: SqliteIndex | None = None, epoch: int = 0) -> DelayService:
    led = SimpleNamespace(leader=1, leader_epoch=epoch)

    async def topic(_: str) -> object:
        return SimpleNamespace(partitions={0: led})

    client = SimpleNamespace(
        topic=topic, forget=lambda: None, twin=lambda: None, request_timeout_ms=1000
    )
    made = DelayService(cast("Client", client), cast("Any", index), {}, instance="i")
    made._clock = cast("Any", SimpleNamespace(monotonic_ms=iter(range(0, 10**9, 6000)).__next__))
    return made


def written(delay: DelayService) -> list[DelayPartition]:
    """Records the partitions whose progress the service writes by itself."""
    found: list[DelayPartition] = []

    async def write_progress(partitions: list[DelayPartition], _: object) -> None:
        found.extend(partitions)
        for each in partitions:
            each.progress.commit()

    mover = SimpleNamespace(write_progress=write_progress)
    delay._movers["later"] = cast("Any", mover)
    delay._consumer = cast("Any", SimpleNamespace(group_metadata=None))
    return found


def answers(monkeypatch: pytest.MonkeyPatch, *logs: LeaderLog) -> None:
    """The leaders' successive answers; the last one is repeated."""
    left = list(logs)

    async def leader_logs(
        _: object, since: Mapping[TopicPartition, int], **_rest: object
    ) -> dict[TopicPartition, LeaderLog]:
        found = left.pop(0) if len(left) > 1 else left[0]
        return dict.fromkeys(since, found)

    async def list_offsets(_: object, wanted: Mapping[TopicPartition, int]) -> dict[Any, Any]:
        assert not wanted
        return {}

    monkeypatch.setattr(service_module, "leader_logs", leader_logs)
    monkeypatch.setattr(service_module, "list_offsets", list_offsets)


@pytest.mark.parametrize(
    ("history", "logs", "lost"),
    [
        # No epochs are known, and the log grows while the service waits.
        ([], [log(100, (1, 0)), log(160, (1, 0))], [range(100, 150)]),
        # The broker was no longer the leader.
        ([], [log(100, (1, 0)), log(160, (1, 0), (2, 90))], None),
        ([EpochRun(2, 0, 149)], [log(160, (1, 0)), log(160, (1, 0), (2, 0))], None),
        # A leader in the epoch of the records read knows at once.
        ([EpochRun(1, 0, 149)], [log(100, (1, 0)), log(160, (1, 0))], [range(100, 150)]),
        ([EpochRun(1, 0, 149)], [log(160, (1, 0)), log(100, (1, 0))], None),
    ],
)
def test_a_log_that_is_too_short_and_grows_is_judged_by_epochs(
    history: list[EpochRun],
    logs: list[LeaderLog],
    lost: list[range] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers(monkeypatch, *logs)
    monkeypatch.setattr(service_module, "LOOK_S", 0.0)
    partition = opened(Progress(Offset(150), {}, History(history)))
    _, found = asyncio.run(service()._looked_at({LATER: partition}))
    assert found == ({} if lost is None else {LATER: lost})


def test_an_index_from_before_another_services_rewind_is_not_used(tmp_path: Path) -> None:
    """Two services have a store each: the other one found the log without its end."""

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        await index.reset(KEY, Offset(0))
        await index.put(KEY, [Entry(10**15, 5)], since=Offset(0), to=Offset(150))
        progress = Progress(Offset(0), {0: Bitmaps((1 << 150) - 1 & ~(1 << 5))})
        progress.history.seen(0, 0, 149)
        progress.rewind([range(100, 150)])
        progress.commit()
        partition = opened(progress)
        present = log(200, (0, 0))
        await service(index)._open(partition, Offset(0), Offset(200), present)
        assert (progress.read_to, await index.indexed_to(partition.stored)) == (0, 0)
        assert partition.stored != KEY
        assert await index.next_due_ms(KEY) is None, "what is of no use is gone"
        await index.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("present", "is_used"),
    [
        (log(200, (3, 0)), True),
        (log(200, (3, 0), (4, 150)), True),
        (log(200, (3, 0), (4, 120)), False),
    ],
)
def test_an_index_beyond_the_known_epochs_is_checked(
    present: LeaderLog, is_used: bool, tmp_path: Path
) -> None:
    """Its entries there may be of records that the log has lost."""

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        await index.reset(KEY, Offset(0))
        await index.put(KEY, [Entry(10**15, 130)], since=Offset(0), to=Offset(150))
        partition = opened(Progress(Offset(0), {}, History([EpochRun(3, 0, 99)])))
        await service(index)._open(partition, Offset(0), Offset(200), present)
        assert partition.progress.read_to == (150 if is_used else 0)
        await index.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("present", "lost"),
    [
        (log(200, (3, 0), (4, 100)), range(0)),
        (log(200, (3, 0), (4, 80)), range(80, 100)),
        (log(70, (3, 0), (4, 70)), range(70, 100)),
    ],
)
def test_a_new_leader_is_asked_for_the_records_read(
    present: LeaderLog, lost: range, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        await index.reset(KEY, Offset(100))
        delay = service(index, epoch=4)
        partition = opened(Progress(Offset(100), {}, History([EpochRun(3, 0, 99)])))
        partition.leader_epoch = 3
        delay.partitions[LATER] = partition
        wrote = written(delay)
        answers(monkeypatch, present)
        if not lost:
            await delay._check_leaders()
            assert (partition.leader_epoch, await index.indexed_to(KEY), wrote) == (4, 100, [])
        else:
            with pytest.raises(LogShortened):
                await delay._check_leaders()
            assert (await index.indexed_to(KEY), wrote) == (0, [partition])
            done = partition.progress.is_done
            assert [done(lost[0] - 1), done(lost[0]), done(99)] == [True, False, False]
        await index.close()

    asyncio.run(scenario())


def test_a_former_leader_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        delay = service(index, epoch=4)
        partition = opened(
            Progress(Offset(100), {}, History([EpochRun(3, 0, 49), EpochRun(5, 50, 99)]))
        )
        partition.leader_epoch = 3
        delay.partitions[LATER] = partition
        answers(monkeypatch, log(70, (3, 0), (4, 50)))
        await delay._check_leaders()
        assert partition.leader_epoch == 3, "it is asked again"
        await index.close()

    asyncio.run(scenario())


def test_each_new_leader_is_asked_separately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A leader that is unreachable or slow does not delay the others."""

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        delay = service(index, epoch=4)
        other = TopicPartition("later", 1)
        for each in (LATER, other):
            delay.partitions[each] = opened(Progress(Offset(0), {}, History([])))
            delay.partitions[each].leader_epoch = 3
        leds = {n: SimpleNamespace(leader=n, leader_epoch=4) for n in (0, 1)}

        async def topic(_: str) -> object:
            return SimpleNamespace(partitions=leds)

        waited: list[int] = []

        async def leader_logs(
            _: object, since: Mapping[TopicPartition, int], timeout_ms: int
        ) -> dict[TopicPartition, LeaderLog]:
            if LATER in since:
                waited.append(timeout_ms)
                if timeout_ms < 3000:
                    raise RequestTimedOut("the epochs")
            return dict.fromkeys(since, log(0, (4, 0)))

        monkeypatch.setattr(delay._client, "topic", topic)
        monkeypatch.setattr(service_module, "leader_logs", leader_logs)
        known = []
        for _ in range(4):
            await delay._check_leaders()
            known.append([each.leader_epoch for each in delay.partitions.values()])
        assert known[0] == [3, 4]
        assert known[-1] == [4, 4]
        assert waited == [1000, 2000, 4000]
        await index.close()

    asyncio.run(scenario())


def test_a_rebuilt_index_covers_the_records_read_again(tmp_path: Path) -> None:
    """Records above the floor are completed already: their epochs are known once they are read."""

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        progress = Progress(Offset(0), {0: Bitmaps(0b1111 << 6)}, History([EpochRun(1, 0, 9)]))
        partition = opened(progress)
        await service(index)._open(partition, Offset(0), Offset(10), log(10, (1, 0), (2, 10)))
        for offset in range(10):
            progress.history.seen(1, offset, offset)
        assert progress.history.runs == [EpochRun(1, 0, 9)]
        await index.close()

    asyncio.run(scenario())


def test_completed_records_are_known_before_they_are_read_again(tmp_path: Path) -> None:
    """A leader may lose them while a new index is built."""

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        done = Bitmaps((1 << 150) - 1 & ~(1 << 5))
        progress = Progress(Offset(0), {0: done}, History([EpochRun(3, 0, 149)]))
        await service(index)._open(opened(progress), Offset(0), Offset(200), log(200, (3, 0)))
        for epoch, offset in ((3, 0), (4, 100), (4, 150)):  # a fetch meets the new leader first
            progress.history.seen(epoch, offset, offset)
            assert progress.lost(log(200, (3, 0), (4, 100))) == [range(100, 150)]
        await index.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(("known", "waits"), [(4, False), (3, True)])
def test_due_records_are_not_read_from_a_leader_that_was_not_checked(
    known: int, waits: bool, tmp_path: Path
) -> None:
    """It may have other records at those offsets."""
    fetched: list[object] = []

    async def retrying(attempt: Callable[[], Awaitable[object]], **_: object) -> object:
        return await attempt()

    async def by_leader(partitions: Mapping[TopicPartition, object]) -> object:
        return {1: list(partitions)}

    async def topic(_: str) -> object:
        return SimpleNamespace(id=KEY.topic_id, partitions={0: SimpleNamespace(leader_epoch=4)})

    async def connection(to: object) -> object:
        fetched.append(to)
        raise ConnectionFailed("enough")

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        await index.reset(KEY, Offset(0))
        await index.put(KEY, [Entry(5, 0)], since=Offset(0), to=Offset(1))
        partition = opened(Progress(Offset(0), {}, History([EpochRun(3, 0, 0)])))
        partition.progress.read(Offset(1))
        partition.leader_epoch, partition.next_due_ms = known, 5
        client = SimpleNamespace(
            retrying=retrying, by_leader=by_leader, topic=topic, connection=connection
        )
        due = DueRecords(cast("Client", client), index, cast("Any", AllThere()), SystemClock())
        with pytest.raises(TopicWaits if waits else ConnectionFailed):
            await due.planned([partition], 10)
        assert bool(fetched) != waits
        await index.close()

    asyncio.run(scenario())


def test_a_failed_rewind_leaves_no_index_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another service may rewind further: an empty index from here on would hide records."""

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        delay = service(index)
        partition = opened(Progress(Offset(100), {}, History([EpochRun(3, 0, 99)])))

        async def write_progress(*_: object) -> None:
            raise ConnectionFailed("lost")

        written(delay)
        monkeypatch.setattr(delay._movers["later"], "write_progress", write_progress)
        with pytest.raises(ConnectionFailed):
            await delay._rewind({LATER: partition}, {LATER: [range(80, 100)]})
        assert partition.stored != KEY
        assert await index.indexed_to(partition.stored) is None
        await index.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("end", [60, 100])
def test_a_log_once_seen_too_short_counts_as_such_even_if_it_grows(
    end: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader rewinds where it is out of range. The next service may find a longer log."""

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        await index.reset(KEY, Offset(100))
        delay = service(index)
        partition = opened(Progress(Offset(90), {}, History([EpochRun(0, 0, 99)])))
        partition.progress.read(Offset(100))
        partition.progress.waits(95)
        delay.partitions[LATER] = partition
        wrote = written(delay)
        answers(monkeypatch, log(end, (0, 0)))
        with pytest.raises(LogShortened):
            await delay._check_onward(LATER, 0)
        assert await index.indexed_to(KEY) == 0
        assert wrote == ([] if end == 100 else [partition])
        assert partition.progress.staged_floor() == min(end, 90)
        assert partition.progress.history.rewinds == (end < 100)
        await index.close()

    asyncio.run(scenario())
