"""A delay or retry topic under any order of records, time, crashes and lost stores.

Each record arrives once and not early, or is cancelled, never both; each schedule goes on from its
newest record until its tombstone; a retry has the back-off of its attempt, and after the last one
it is a dead letter.
"""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.client.membership.member import GroupMetadata
from penstock.client.record_sender import ProducerRecord
from penstock.config.delay_route import Route, route_of
from penstock.record.dead_letter import read_dead_letter
from penstock.record.record import Record
from penstock.retry.partition import DelayPartition
from penstock.retry.progress import Bitmaps, Outcome, Progress
from penstock.retry.store.index import IndexKey
from penstock.retry.store.sqlite import SqliteIndex
from penstock.types import Offset, TopicPartition, Uuid
from support.retry.moving import Crash, WorldMover

T = TypeVar("T")
KEY = IndexKey(Uuid(bytes(16)), 0)
LATER = TopicPartition("later", 0)
DELAY = route_of("later", {"penstock.delay.to": "orders"})
BACKOFF_MS = (100, 700, 2500)
RETRY = route_of(
    "later",
    {
        "penstock.retry.to": "orders",
        "penstock.retry.backoff": ",".join(f"{each}ms" for each in BACKOFF_MS),
    },
)
START_MS = 1_077_000
"""Three seconds before the next minute, for cron schedules."""
MEMBER = GroupMetadata("penstock-delay", "m", 1)


def now(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits, without a loop."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("it waits")


class WaitingMachine(RuleBasedStateMachine):
    """The service's transactions and a real store; log, state topic and clock are simulated."""

    route: Route | None

    def __init__(self) -> None:
        super().__init__()
        self.topic = LATER
        self.now_ms = START_MS
        self.log: list[Record] = []
        self.delivered: list[tuple[bytes, int]] = []
        """Values that reached the target, and when."""
        self.due_ms: dict[bytes, int] = {}
        self.floor = Offset(0)
        self.chunks: dict[int, Bitmaps] = {}
        self.cancelled: set[int] = set()
        self.new_store()
        self.begin()

    def teardown(self) -> None:
        """In the end every record that was not cancelled has arrived; every schedule has ended."""
        for key in (b"a", b"b"):
            self.append(key, None)
        self.read(len(self.log))  # retries wait from then on
        self.now_ms += 10_000_000
        while self.partition.progress.read_to < len(self.log) or self.transaction("none"):
            self.read(len(self.log))
        arrived = [value for value, _ in self.delivered]
        for value in self.due_ms:
            offset = int(value)
            assert arrived.count(value) == (offset not in self.cancelled), value
        now(self.index.close())

    # What clients do.

    def append(self, key: bytes | None, value: bytes | None, **headers: int | str) -> int:
        named = [(f"penstock-{n.replace('_', '-')}", str(v).encode()) for n, v in headers.items()]
        self.log.append(Record(len(self.log), self.now_ms, key, value, list(named)))
        return len(self.log) - 1

    @rule(chance=st.integers(0, 1000))
    def cancel(self, chance: int) -> None:
        if self.log:
            self.append(None, None, cancel=chance % len(self.log))

    @rule(ms=st.integers(1, 4000))
    def wait(self, ms: int) -> None:
        self.now_ms += ms

    # What the service does.

    def new_store(self) -> None:
        self.index = SqliteIndex(Path(":memory:"))
        now(self.index.reset(KEY, self.floor))

    def begin(self) -> None:
        """Open a partition as `DelayService` does."""
        assert self.route is not None
        progress = Progress(self.floor, dict(self.chunks))
        self.partition = DelayPartition(LATER, KEY, self.route, progress)
        self.mover = WorldMover(self, self.index)
        self.partition.opened_to = len(self.log) - 1

        async def resume() -> None:
            to = await self.index.indexed_to(KEY)
            if to is None or to < progress.read_to:
                await self.index.reset(KEY, progress.read_to)
                return
            found = [each async for page in self.index.pages(KEY) for each in page]
            await self.index.remove(KEY, [each for each in found if progress.is_done(each)])
            for each in found:
                if not progress.is_done(each):
                    progress.waits(each)
            progress.read(to)
            self.partition.resume(await self.index.schedules(KEY))
            self.partition.next_due_ms = await self.index.next_due_ms(KEY)

        now(resume())

    @rule(loses=st.booleans())
    def crash(self, loses: bool) -> None:
        if loses:
            now(self.index.close())
            self.new_store()
        self.begin()

    @rule(count=st.integers(1, 6))
    def read(self, count: int) -> None:
        since = self.partition.progress.read_to
        new = self.log[since : since + count]
        if not new:
            return
        entries = {}
        for record in new:
            for entry in self.partition.read(record, self.now_ms):
                entries[entry.offset] = entry
        to = Offset(since + len(new))
        now(self.index.put(KEY, list(entries.values()), since=since, to=to))
        self.partition.indexed(entries.values())
        self.partition.progress.read(to)
        self.partition.caught_up()

    @rule(crash=st.sampled_from(["none", "none", "before commit", "after commit"]))
    def deliver(self, crash: str) -> None:
        self.transaction(crash)

    def transaction(self, crash: str) -> bool:
        """One transaction; a crash before its end leaves nothing, one after it leaves the index."""
        self.mover.crash(crash)
        try:
            moved = asyncio.run(self.mover.move([self.partition], MEMBER))
        except Crash:
            self.begin()
            return False
        finally:
            self.note_cancelled()
        return moved > 0

    def note_cancelled(self) -> None:
        """Note the cancellations in the committed progress."""
        done = Progress(self.floor, dict(self.chunks))
        for value in self.due_ms:
            if done.outcome(int(value)) is Outcome.CANCELLED:
                self.cancelled.add(int(value))

    def arrived(self, record: ProducerRecord) -> None:
        assert record.topic == "orders"
        self.delivered.append((record.value or b"", self.now_ms))

    @invariant()
    def nothing_is_early_or_twice(self) -> None:
        for value, at_ms in self.delivered:
            assert at_ms >= self.due_ms.get(value, 0)
        plain = [value for value, _ in self.delivered if value in self.due_ms]
        assert len(plain) == len(set(plain))
        assert not {int(value) for value in plain} & self.cancelled


class DelayMachine(WaitingMachine):
    """Records with a delivery time, and schedules."""

    route = DELAY

    @rule(wait_ms=st.integers(10, 5000))
    def delay(self, wait_ms: int) -> None:
        value = b"%d" % len(self.log)
        self.due_ms[value] = self.now_ms + wait_ms
        self.append(b"k", value, delay_ms=wait_ms)

    @rule(key=st.sampled_from([b"a", b"b"]), seconds=st.integers(1, 3))
    def schedule(self, key: bytes, seconds: int) -> None:
        self.append(key, b"s%d" % len(self.log), schedule=f"every {seconds}s")

    @rule(key=st.sampled_from([b"a", b"b"]))
    def end_schedule(self, key: bytes) -> None:
        self.append(key, None)

    @rule(key=st.sampled_from([b"a", b"b"]), minutes=st.integers(1, 3))
    def cron(self, key: bytes, minutes: int) -> None:
        self.append(key, b"c%d" % len(self.log), schedule=f"*/{minutes} * * * * Asia/Kolkata")


class RetryMachine(WaitingMachine):
    """Failed records with their attempts."""

    route = RETRY

    def __init__(self) -> None:
        super().__init__()
        self.attempts: dict[bytes, int] = {}
        """The number of attempts of each record."""

    @rule(attempts=st.integers(0, 5))
    def fail(self, attempts: int) -> None:
        value = b"%d" % len(self.log)
        self.attempts[value] = attempts
        may = attempts < len(BACKOFF_MS)
        self.due_ms[value] = self.now_ms + (BACKOFF_MS[attempts] if may else 0)
        self.append(b"k", value, **({"attempt": attempts} if attempts else {}))

    def arrived(self, record: ProducerRecord) -> None:
        value = record.value or b""
        self.delivered.append((value, self.now_ms))
        had = self.attempts.get(value)
        if had is None:
            return
        if had < len(BACKOFF_MS):
            assert record.topic == "orders"
            assert dict(record.headers)["penstock-attempt"] == b"%d" % (had + 1)
        else:
            assert record.topic == "later.dlq"
            letter = read_dead_letter(list(record.headers))
            assert letter is not None
            assert letter.attempt == had


TestDelayMachine = DelayMachine.TestCase
TestRetryMachine = RetryMachine.TestCase
