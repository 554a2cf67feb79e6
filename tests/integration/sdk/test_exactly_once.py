"""Exactly-once handlers: coroutines, and what a killed program leaves behind."""

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from penstock.sdk.app import App, Guarantee
from penstock.sdk.errors import HandlerFailed, TransactionUnanswered
from penstock.sdk.interceptor import ConsumerInterceptor
from penstock.sdk.parallel.work import Order
from penstock.sdk.producer import Producer
from penstock.sdk.record import Outgoing, Record
from penstock.sdk.transactions import Transactions
from penstock.testing.broker import EmbeddedBroker
from penstock.testing.clock import ManualClock
from support.records.reading import all_records
from support.sdk import dying
from support.sdk.apps import app_of, running, written
from support.sdk.waiting import wait_until

Raw = Record[bytes, bytes]


def values(broker: EmbeddedBroker, topic: str) -> list[bytes | None]:
    return [each.value() for each in all_records(broker.bootstrap, topic)]


def test_coroutines_run_concurrently_and_results_keep_the_order(
    shared_broker: EmbeddedBroker,
) -> None:
    shared_broker.create_topic("asked-once", 1)
    shared_broker.create_topic("answered-once", 1)
    with Producer({"bootstrap.servers": shared_broker.bootstrap, "linger.ms": 50}) as producer:
        producer.send_all(Outgoing("asked-once", b"%d" % n, b"%d" % (n % 3)) for n in range(30))
    app = app_of(shared_broker, "answering")
    running_now: set[bytes | None] = set()
    most = 0

    @app.on("asked-once", guarantee=Guarantee.EXACTLY_ONCE, workers=3, order=Order.KEY)
    async def answer(record: Raw) -> Outgoing[bytes, bytes]:
        nonlocal most
        assert record.key not in running_now
        running_now.add(record.key)
        most = max(most, len(running_now))
        for _ in range(30 - int(record.value or b"")):  # later records are quicker
            await asyncio.sleep(0)
        running_now.remove(record.key)
        return Outgoing("answered-once", record.value)

    with running(app):
        wait_until(lambda: len(values(shared_broker, "answered-once")) == 30, "all are answered")
    assert values(shared_broker, "answered-once") == [b"%d" % n for n in range(30)]
    assert most > 1


def test_a_cancelled_coroutine_counts_as_failed(shared_broker: EmbeddedBroker) -> None:
    """Nothing is committed without its results."""
    for topic in ("cancelled", "not-cancelled"):
        shared_broker.create_topic(topic, 1)
    with Producer({"bootstrap.servers": shared_broker.bootstrap, "linger.ms": 50}) as producer:
        producer.send_all(Outgoing("cancelled", b"%d" % n) for n in range(4))
    app = app_of(shared_broker, "cancelling")

    @app.on("cancelled", guarantee=Guarantee.EXACTLY_ONCE, dead_letters=True)
    async def handle(record: Raw) -> Outgoing[bytes, bytes]:
        if record.value == b"1":
            raise asyncio.CancelledError
        return Outgoing("not-cancelled", record.value)

    with running(app):
        wait_until(lambda: len(values(shared_broker, "not-cancelled")) == 3, "the others")
    assert values(shared_broker, "cancelled.cancelling.dlq") == [b"1"]


def test_without_a_policy_a_coroutine_that_fails_ends_the_application(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "ends-later", b"1", b"2", b"3")
    app = app_of(shared_broker, "ending")

    @app.on("ends-later", guarantee=Guarantee.EXACTLY_ONCE, workers=2, order=Order.NONE)
    async def handle(_: Raw) -> None:
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(HandlerFailed, match="ends-later-0 offset 0: ValueError: no"):
        app.run()


class Commits(ConsumerInterceptor):
    """Records the committed offsets of partition 0."""

    def __init__(self) -> None:
        self.offsets = [0]

    def on_commit(self, offsets: Mapping[tuple[str, int], int], /) -> None:
        self.offsets += [offset for (_, partition), offset in offsets.items() if partition == 0]


@pytest.mark.parametrize("kind", ["functions", "coroutines"])
def test_slow_handlers_make_progress_in_smaller_transactions(
    shared_broker: EmbeddedBroker, kind: str
) -> None:
    """Nothing is polled meanwhile: one transaction for all records would outlast
    `max.poll.interval.ms`.
    """
    slow, out = f"slow-{kind}", f"slow-{kind}-out"
    written(shared_broker, slow, *(b"%d" % n for n in range(20)))
    shared_broker.create_topic(out, 1)
    clock, commits, seen = ManualClock(), Commits(), list[int]()
    app = app_of(shared_broker, slow, clock=clock)

    def handle(record: Raw) -> Outgoing[bytes, bytes]:
        seen.append(record.offset)
        clock.advance(40_000)
        return Outgoing(out, record.value)

    async def handle_later(record: Raw) -> Outgoing[bytes, bytes]:
        return handle(record)

    app.on(slow, guarantee=Guarantee.EXACTLY_ONCE, interceptors=[commits])(
        handle if kind == "functions" else handle_later
    )
    with running(app):
        wait_until(lambda: len(values(shared_broker, out)) == 20, "all are handled")
    assert values(shared_broker, out) == [b"%d" % n for n in range(20)]
    assert seen == list(range(20)), "none is handled again"
    assert max(b - a for a, b in pairwise(commits.offsets)) <= 3, "a third of five minutes"


def test_a_held_partition_continues_after_a_rebalance(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "held-and-moved", b"1", b"2")
    config = {
        "bootstrap.servers": shared_broker.bootstrap,
        "log_level": 0,
        "group.id": "holders",
        "heartbeat.interval.ms": 100,
        "partition.assignment.strategy": "range",
    }
    with Transactions(config, ["held-and-moved"], group="holders", clock=ManualClock()) as holding:
        records, _ = next(holding.batches())
        holding.hold(records[0], 10**6)
        holding.commit()
        assert not list(holding.batches(idle_s=0.5)), "it is held"
        again: list[Raw] = []
        moved = threading.Event()
        other = confluent_kafka.Consumer(
            {**config, "enable.auto.commit": False}
        )  # only to trigger a rebalance
        other.subscribe(["held-and-moved"], on_assign=lambda *_: moved.set())

        def comes_again() -> bool:
            again.extend(each for records, _ in holding.batches(idle_s=0.1) for each in records)
            if not moved.is_set():
                other.poll(0.1)
                if moved.is_set():
                    other.close()
            return moved.is_set() and bool(again)

        wait_until(comes_again, "it is read again", 20)
        assert again[0].value == b"1"


def test_a_handler_that_hangs_does_not_delay_the_stop(shared_broker: EmbeddedBroker) -> None:
    written(shared_broker, "hanging", b"1", b"2")
    shared_broker.create_topic("hanging-out", 1)
    app, hangs, go_on = app_of(shared_broker, "hung"), threading.Event(), threading.Event()

    @app.on("hanging", guarantee=Guarantee.EXACTLY_ONCE, drain_s=0.1)
    def hang(record: Raw) -> Outgoing[bytes, bytes]:
        hangs.set()
        go_on.wait(60)
        return Outgoing("hanging-out", record.value)

    try:
        with running(app):
            assert hangs.wait(20)
            began_s = time.monotonic()
        assert time.monotonic() - began_s < 20
    finally:
        go_on.set()
    assert values(shared_broker, "hanging-out") == []
    group = confluent_kafka.Consumer(
        {"bootstrap.servers": shared_broker.bootstrap, "group.id": "hung"}
    )
    assert group.committed([TopicPartition("hanging", 0)], 20)[0].offset < 0
    group.close()


def test_a_program_that_stops_does_not_finish_its_batch(shared_broker: EmbeddedBroker) -> None:
    """Finished records are committed; the rest is left to the next run."""
    written(shared_broker, "stopping", *(b"%d" % n for n in range(20)))
    shared_broker.create_topic("stopping-out", 1)
    for expected in ([b"0"], [b"0", b"1"]):
        app = app_of(shared_broker, "stoppers")

        @app.on("stopping", guarantee=Guarantee.EXACTLY_ONCE)
        def handle(record: Raw, app: App = app) -> Outgoing[bytes, bytes]:
            for each in app._running:
                each.stop()
            return Outgoing("stopping-out", record.value)

        app.run()
        assert values(shared_broker, "stopping-out") == expected


class Silent:
    """A transactional producer whose first calls time out."""

    def __init__(self, client: confluent_kafka.Producer, times: int) -> None:
        self._client, self.left = client, times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def commit_transaction(self, timeout_s: float) -> None:
        if self.left:
            self.left -= 1
            late = KafkaError(KafkaError._TIMED_OUT, "retry call to resume", retriable=True)
            raise KafkaException(late)
        self._client.commit_transaction(timeout_s)


def silent(transactions: Transactions[bytes, bytes], times: int) -> None:
    made: Any = Silent(transactions.output.client, times)
    transactions._transactional = made


def test_an_unanswered_commit_is_retried(shared_broker: EmbeddedBroker) -> None:
    """Any call but the same commit would fail, since a commit is in progress."""
    written(shared_broker, "late", b"0", b"1")
    shared_broker.create_topic("made-late", 1)
    config = {"bootstrap.servers": shared_broker.bootstrap}
    with Transactions(config, ["late"], group="late") as transactions:
        silent(transactions, 3)
        for records, output in transactions.batches(idle_s=1):
            for record in records:
                output.send("made-late", record.value)
    assert values(shared_broker, "made-late") == [b"0", b"1"]


def test_a_program_that_stops_does_not_wait_for_silent_brokers(
    shared_broker: EmbeddedBroker,
) -> None:
    written(shared_broker, "silent", b"0")
    config = {"bootstrap.servers": shared_broker.bootstrap}

    def copy() -> None:
        with Transactions(
            config, ["silent"], group="silent", is_stopping=lambda: True
        ) as transactions:
            silent(transactions, 1)
            for _ in transactions:
                pass

    with pytest.raises(TransactionUnanswered, match="the next start finds out"):
        copy()


def test_transaction_settings_reach_the_producer(shared_broker: EmbeddedBroker) -> None:
    shared_broker.create_topic("patience", 1)
    app = app_of(shared_broker, "too-patient")
    hour = {"transaction.timeout.ms": 3_600_000}
    app.on("patience", guarantee=Guarantee.EXACTLY_ONCE, config=hour)(lambda _: None)
    with pytest.raises(KafkaException, match="INVALID_TRANSACTION_TIMEOUT"):
        app.run()


def test_a_restart_aborts_the_transaction_of_a_killed_program_at_once(tmp_path: Path) -> None:
    settings = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "100"}
    with EmbeddedBroker(settings=settings) as broker:
        written(broker, "from", b"1", b"2")
        broker.create_topic("to", 1)
        program = [sys.executable, dying.__file__, broker.bootstrap, str(tmp_path)]
        killed = subprocess.run([*program, "die"], timeout=60, check=False)
        assert killed.returncode == -signal.SIGKILL
        assert values(broker, "to") == []
        began_s = time.monotonic()
        with subprocess.Popen([*program, "live"]) as restarted:
            try:
                wait_until(lambda: values(broker, "to") == [b"1", b"2"], "both are there")
            finally:
                restarted.kill()
        assert time.monotonic() - began_s < dying.TIME_OUT_S / 2
