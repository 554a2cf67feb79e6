"""What records of a delay topic mean for its index."""

import asyncio
from pathlib import Path

from penstock.config.delay_route import route_of
from penstock.record.record import Record
from penstock.retry.partition import DelayPartition
from penstock.retry.progress import Progress
from penstock.retry.store.index import IndexKey, Kind
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
        before = opened()
        for record in (first, tombstone):
            await index.put(KEY, before.read(record, NOW_MS), Offset(record.offset + 1))
        after = opened()
        after.resume(await index.schedules(KEY))
        assert [each.kind for each in after.read(onward, NOW_MS)] == [Kind.CANCELLED]
        await index.close()

    asyncio.run(scenario())
