"""How the records of a delay topic change its index."""

import asyncio
from pathlib import Path

from penstock.config.delay_route import route_of
from penstock.record.record import Record
from penstock.retry.partition import DelayPartition
from penstock.retry.progress import Progress
from penstock.retry.store.index import DueKind, IndexKey
from penstock.retry.store.sqlite import SqliteIndex
from penstock.types import Offset, TopicPartition, Uuid

KEY = IndexKey(Uuid(bytes(16)), 0)
NOW_MS = 1_000_000


def opened() -> DelayPartition:
    route = route_of("later", {"penstock.delay.to": "orders"})
    assert route is not None
    return DelayPartition(TopicPartition("later", 0), KEY, route, Progress(Offset(0), {}))


def test_a_tombstone_ends_a_schedule_whose_next_record_is_read_after_a_restart(
    tmp_path: Path,
) -> None:
    every: list[tuple[str, bytes | None]] = [("penstock-schedule", b"every 1s")]
    first = Record(0, NOW_MS, b"k", b"v", every)
    tombstone = Record(1, NOW_MS, b"k", None, [])
    onward = Record(
        2,
        NOW_MS,
        b"k",
        b"v",
        [
            *every,
            ("penstock-schedule-start", b"%d" % NOW_MS),
            ("penstock-schedule-origin", b"0"),
            ("penstock-next-at", b"%d" % (NOW_MS + 1000)),
        ],
    )

    async def scenario() -> None:
        index = SqliteIndex(tmp_path / "s")
        await index.reset(KEY, Offset(0))
        before = opened()
        for record in (first, tombstone):
            since, to = Offset(record.offset), Offset(record.offset + 1)
            await index.put(KEY, before.read(record, NOW_MS), since=since, to=to)
        after = opened()
        after.resume(await index.schedules(KEY))
        assert [each.kind for each in after.read(onward, NOW_MS)] == [DueKind.CANCELLED]
        await index.close()

    asyncio.run(scenario())


def test_tombstones_of_schedules_are_forgotten_once_all_records_are_read() -> None:
    partition = opened()
    partition.written_to = 3
    for offset in range(3):
        partition.read(Record(offset, NOW_MS, b"k%d" % offset, None, []), NOW_MS)
    partition.caught_up()
    assert len(partition._tombstones) == 3  # the service may have written a record further ahead
    partition.progress.read(Offset(4))
    partition.caught_up()
    assert partition._tombstones == {}
