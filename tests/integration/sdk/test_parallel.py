"""The parallel consumer against a broker."""

import asyncio
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from penstock.sdk.errors import HandlerFailed
from penstock.sdk.parallel import consumer as engine
from penstock.sdk.parallel import saved
from penstock.sdk.parallel.consumer import Again, ParallelConsumer
from penstock.sdk.parallel.pool import AsyncioPool, Pool, ProcessPool, ThreadPool
from penstock.sdk.parallel.work import Order
from penstock.sdk.producer import Producer
from penstock.sdk.record import Outgoing, Record
from penstock.testing.broker import EmbeddedBroker
from support.records.reading import all_records
from support.sdk import counting, doubling
from support.sdk.waiting import wait_until

SUPPORT = Path(counting.__file__)
Raw = Record[bytes, bytes]


def config(broker: EmbeddedBroker, group: str, **more: object) -> dict[str, object]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "log_level": 0,
        **more,
    }


def written(
    broker: EmbeddedBroker,
    topic: str,
    records: list[tuple[bytes | None, bytes]],
    partitions: int = 1,
) -> None:
    broker.create_topic(topic, partitions)
    with Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5}) as producer:
        producer.send_all(Outgoing(topic, value, key) for key, value in records)


class Running:
    """A consumer on a thread of its own."""

    def __init__(self, consumer: ParallelConsumer[Any, Any]) -> None:
        self.consumer = consumer
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.consumer.run()
        except Exception as error:  # noqa: BLE001 - for the test to look at
            self.error = error

    def stop(self) -> None:
        self.consumer.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.mark.row("A059")
@pytest.mark.parametrize("kind", ["threads", "asyncio"])
def test_each_key_stays_in_order_while_handlers_fail_at_random(
    shared_broker: EmbeddedBroker, kind: str
) -> None:
    topic, dice = f"keys-{kind}", random.Random(7)
    written(shared_broker, topic, [(b"%d" % (n % 10), b"%d" % n) for n in range(400)], 3)
    done: defaultdict[bytes | None, list[int]] = defaultdict(list)

    def handle(record: Raw) -> None:
        if dice.random() < 0.1:
            raise RuntimeError("unlucky")
        done[record.key].append(int(record.value or b""))

    async def handle_later(record: Raw) -> None:
        await asyncio.sleep(0)
        handle(record)

    pool: Pool = ThreadPool(handle, 8) if kind == "threads" else AsyncioPool(handle_later, 8)
    running = Running(
        ParallelConsumer(
            config(shared_broker, topic), [topic], pool, on_failure=lambda *_: Again(10)
        )
    )
    wait_until(lambda: sum(map(len, done.values())) >= 400, "all records are handled")
    running.stop()
    assert dict(done) == {b"%d" % key: list(range(key, 400, 10)) for key in range(10)}


def test_handlers_run_in_other_processes(shared_broker: EmbeddedBroker, tmp_path: Path) -> None:
    key = str(tmp_path).encode()
    written(shared_broker, "processed", [(key, b"%d" % n) for n in range(6)])
    running = Running(
        ParallelConsumer(
            config(shared_broker, "processed"),
            ["processed"],
            ProcessPool(doubling.handle, 2),
            order=Order.NONE,
        )
    )
    wait_until(lambda: len(list(tmp_path.iterdir())) == 6, "all records are handled")
    running.stop()


@pytest.mark.slow
@pytest.mark.row("A059")
def test_after_a_kill_few_records_behind_one_that_hangs_are_repeated(
    shared_broker: EmbeddedBroker, tmp_path: Path
) -> None:
    count, file = 6_000, tmp_path / "handled"
    records: list[tuple[bytes | None, bytes]] = [(b"%d" % n, b"%d" % n) for n in range(count)]
    records[10] = b"stuck", b"stuck"
    written(shared_broker, "stuck", records)

    def handled() -> list[bytes]:
        return file.read_bytes().split() if file.exists() else []

    def run_until(condition: Callable[[], bool]) -> None:
        command = [sys.executable, str(SUPPORT), shared_broker.bootstrap, "stuck", str(file)]
        with subprocess.Popen(command) as program:
            try:
                wait_until(condition, "the program handles the records")
            finally:
                program.send_signal(signal.SIGKILL)

    run_until(lambda: len(handled()) >= count // 2)
    first = len(handled())
    run_until(lambda: len(set(handled())) == count)
    again = Counter(handled())
    repeated = sum(times - 1 for times in again.values())
    assert first < count, "the first program was killed in the middle"
    assert again[b"stuck"] == 2
    assert repeated <= 1_000


def test_progress_too_long_for_offset_metadata_is_kept_in_a_topic(
    shared_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saved, "MOST_METADATA", 40)
    written(shared_broker, "long", [(b"%d" % n, b"%d" % n) for n in range(300)])
    never, handled = threading.Event(), []

    def handle(record: Raw) -> None:
        if record.offset in {3, 100, 200} and not never.is_set():
            never.wait(30)
            raise RuntimeError("stopped")
        handled.append(record.offset)

    def consuming() -> Running:
        return Running(
            ParallelConsumer(
                config(shared_broker, "long"),
                ["long"],
                ThreadPool(handle, 8),
                drain_s=0.1,
                redo_at_most=20,
                overflow_topic="long-progress",
            )
        )

    first = consuming()
    wait_until(lambda: len(handled) == 297, "all but three are handled")
    first.stop()
    never.set()
    handled.clear()
    second = consuming()
    wait_until(lambda: len(handled) == 3, "the three are handled")
    second.stop()
    assert sorted(handled) == [3, 100, 200]
    pages = all_records(shared_broker.bootstrap, "long-progress")
    assert pages
    assert all(b"long\0long\0000\0" in (each.key() or b"") for each in pages)


@pytest.mark.row("A177")
def test_slow_work_causes_no_rebalance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Current clients send heartbeats by themselves; only polling must not stop."""
    settings = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100"}
    with EmbeddedBroker(settings=settings) as broker:
        written(broker, "slow", [(None, b"x")])
        handled = threading.Event()

        def handle(_: Raw) -> None:
            time.sleep(2.5)
            handled.set()

        timing = {
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 1000,
            "max.poll.interval.ms": 1000,
        }
        consumer = ParallelConsumer(
            config(broker, "slow", **timing), ["slow"], ThreadPool(handle, 1)
        )
        assigned: list[int] = []
        original = consumer._assigned

        def noting(client: object, partitions: list[TopicPartition]) -> None:
            assigned.append(len(partitions))
            original(client, partitions)

        monkeypatch.setattr(consumer, "_assigned", noting)
        running = Running(consumer)
        assert handled.wait(20)
        running.stop()
        assert assigned == [1]


def test_a_failure_without_a_policy_ends_the_consumer_and_commits_the_rest(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "fatal", [(b"%d" % n, b"%d" % n) for n in range(20)])

    def handle(record: Raw) -> None:
        if record.offset == 5:
            raise ValueError("no such thing")

    running = Running(
        ParallelConsumer(config(shared_broker, "fatal"), ["fatal"], ThreadPool(handle, 4))
    )
    wait_until(lambda: running.error is not None, "the consumer ends")
    running.stop()
    assert isinstance(running.error, HandlerFailed)
    assert "fatal-0 offset 5: ValueError: no such thing" in str(running.error)


def test_the_buffer_is_bounded(
    shared_broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(shared_broker, "bounded", [(None, b"%d" % n) for n in range(2_000)])
    go, handled = threading.Event(), []

    def handle(record: Raw) -> None:
        go.wait(30)
        handled.append(record.offset)

    consumer = ParallelConsumer(
        config(shared_broker, "bounded"), ["bounded"], ThreadPool(handle, 4), most_buffered=100
    )
    seen: list[int] = []
    pause = consumer._tend_pause

    def noting(buffered: int) -> None:
        seen.append(buffered)
        pause(buffered)

    monkeypatch.setattr(consumer, "_tend_pause", noting)
    running = Running(consumer)
    wait_until(lambda: bool(seen) and seen[-1] >= 100, "the buffer is full")
    go.set()
    wait_until(lambda: len(handled) >= 2_000, "all are handled")
    running.stop()
    assert max(seen) <= 100 + 1
    assert sorted(handled) == list(range(2_000))
    assert engine.BUSY_S < engine.IDLE_S


def test_a_record_that_waits_for_its_next_attempt_occupies_no_worker(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "patient", [(b"%d" % n, b"%d" % n) for n in range(20)])
    handled: list[int] = []

    def handle(record: Raw) -> None:
        if record.offset == 0 and len(handled) < 19:
            raise RuntimeError("only after all others")
        handled.append(record.offset)

    running = Running(
        ParallelConsumer(
            config(shared_broker, "patient"),
            ["patient"],
            ThreadPool(handle, 1),
            on_failure=lambda *_: Again(100),
        )
    )
    wait_until(lambda: len(handled) == 20, "all are handled")
    running.stop()
    assert handled == [*range(1, 20), 0]


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_order_per_key_holds_across_rebalances(
    shared_broker: EmbeddedBroker, strategy: str
) -> None:
    """Consumers join and leave: no record is lost, and no consumer handles an older record of a key
    after a newer one.
    """
    topic = f"moving-{strategy}"
    settings = config(shared_broker, topic, **{"partition.assignment.strategy": strategy})
    written(shared_broker, topic, [(b"%d" % (n % 20), b"%d" % n) for n in range(2_000)], 4)
    handled: list[tuple[int, bytes | None, int]] = []

    def consuming(number: int) -> Running:
        def handle(record: Raw) -> None:
            time.sleep(0.001)
            handled.append((number, record.key, int(record.value or b"")))

        return Running(ParallelConsumer(settings, [topic], ThreadPool(handle, 4), most_buffered=50))

    consumers = [consuming(0)]
    for number in range(1, 3):
        before = len(handled)
        wait_until(lambda before=before: len(handled) > before + 100, "work goes on")  # type: ignore[misc]
        consumers.append(consuming(number))
    consumers.pop(0).stop()
    wait_until(lambda: len({each[2] for each in handled}) == 2_000, "all are handled")
    for each in consumers:
        each.stop()
    assert len(handled) == 2_000, "drained partitions repeat nothing"
    per_key: defaultdict[bytes | None, list[int]] = defaultdict(list)
    for _, key, value in handled:
        per_key[key].append(value)
    assert all(values == sorted(values) for values in per_key.values())
