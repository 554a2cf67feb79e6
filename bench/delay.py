"""The delay service of `penstock serve`: its throughput, how late it delivers, and its memory.

python -m bench delay [--records 200000] [--seconds 10] [--behind 10] [--pending 1000000]
    [--out FILE]
"""

import argparse
import json
import os
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import msgspec
from bench.interpreter import about
from bench.process import cpu_s, resident_mb
from bench.report import is_missed
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from penstock.retry.address_file import FILE, ServiceAddress

PARTITIONS = 4
PER_S = 1000
PAIRS_PER_S = 50
WEEK_S = 7 * 86_400
LONG_S = 120
Figures = list[tuple[str, float, str]]
"""Name, value, and aim (a sign and a number)."""


class Service:
    """The delay service's process, read through its metrics page."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def address(self) -> ServiceAddress:
        return msgspec.json.decode((self.folder / FILE).read_bytes(), type=ServiceAddress)

    def value(self, name: str) -> float:
        """The sum of a metric over its labels; -1 if the page cannot be read."""
        try:
            with urlopen(f"http://{self.address().http}/metrics", timeout=5) as page:
                text = page.read().decode()
        except OSError:
            return -1
        found = re.findall(rf"^{name}(?:{{.*}})? (.+)$", text, re.MULTILINE)
        return sum(map(float, found))

    def kill(self) -> None:
        pid = self.address().pid
        (self.folder / FILE).unlink()
        os.kill(pid, signal.SIGKILL)


@contextmanager
def serving() -> Iterator[tuple[str, Service]]:
    with (
        tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder,
        PenstockBroker(folder=Path(folder)) as broker,
    ):
        later = {"penstock.delay.to": "orders"}
        topics = [NewTopic("orders", PARTITIONS), NewTopic("later", PARTITIONS, config=later)]
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        for made in admin.create_topics(topics).values():
            made.result()
        (delay,) = _found(lambda: list(Path(folder).rglob(FILE)))
        yield broker.bootstrap, Service(delay.parent)


def _found(look: Callable[[], list[Path]]) -> list[Path]:
    wait_for(lambda: bool(look()), "the delay service")
    return look()


def wait_for(condition: Callable[[], bool], what: str, every_s: float = 0.02) -> None:
    end_s = time.monotonic() + LONG_S
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError(f"waited {LONG_S} s for {what}")
        time.sleep(every_s)


def produce(bootstrap: str, count: int, due_ms: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20})
    headers: dict[str, str | bytes | None] = {"penstock-deliver-at": str(due_ms)}
    for each in range(count):
        producer.produce(
            "later", b"v" * 100, b"k%d" % (each % 1000), each % PARTITIONS, headers=headers
        )
        if each % 10_000 == 0:
            producer.poll(0)
            while len(producer) > 50_000:
                producer.poll(0.05)
    producer.flush()


def moved(count: int) -> Figures:
    """Throughput when all records are due at once, after all are indexed."""
    with serving() as (bootstrap, service):
        due_s = time.time() + 20 + count / 5000
        produce(bootstrap, count, round(due_s * 1000))
        wait_for(lambda: service.value("penstock_delay_pending") == count, "the index", 0.2)
        before_s = cpu_s([service.address().pid])
        time.sleep(max(0.0, due_s - time.time()))
        wait_for(lambda: service.value("penstock_delay_moved_total") == count, "the end", 0.1)
        took_s, used_s = time.time() - due_s, cpu_s([service.address().pid]) - before_s
        return [
            (f"{count:,} due at once, records/s", count / took_s, ">= 20000"),
            (f"{count:,} due at once, records for each CPU s of the service", count / used_s, ""),
        ]


def late(seconds: int) -> Figures:
    """How late a consumer sees records when 1,000 are due each second."""

    def send(producer: Producer, number: int, at_s: float) -> None:
        schedule(producer, number, at_s + 3)

    found = lateness(seconds * PER_S, PER_S, send)
    at = f"{PER_S:,} due/s, "
    return [
        (at + "late at p50, ms", found[len(found) // 2], "<= 10"),
        (at + "late at p99, ms", found[len(found) * 99 // 100], "<= 50"),
        (at + "latest, ms", found[-1], ""),
        (at + "earliest, ms", found[0], ">= -1"),
    ]


def behind(seconds: int) -> Figures:
    """Lateness of records due in a second, each right behind one due in a week in its partition."""

    def send(producer: Producer, number: int, at_s: float) -> None:
        schedule(producer, number, at_s + WEEK_S)
        schedule(producer, number, at_s + 1)

    found = lateness(seconds * PAIRS_PER_S, PAIRS_PER_S, send)
    at = "due in 1 s behind one due in a week, "
    return [
        (at + "late at p99, ms", found[len(found) * 99 // 100], "<= 50"),
        (at + "earliest, ms", found[0], ">= -1"),
    ]


def schedule(producer: Producer, number: int, due_s: float) -> None:
    due_ms = round(due_s * 1000)
    headers: dict[str, str | bytes | None] = {"penstock-deliver-at": str(due_ms)}
    producer.produce("later", str(due_ms), b"k%d" % number, number % PARTITIONS, headers=headers)


def lateness(count: int, per_s: int, send: Callable[[Producer, int, float], None]) -> list[float]:
    """How many milliseconds late a consumer sees each of `count` records, smallest first."""
    with serving() as (bootstrap, _):
        consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 10,
            }
        )
        consumer.subscribe(["orders"])
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
        schedule(producer, 0, time.time())
        end_s = time.monotonic() + LONG_S
        # Once the first record arrives, the broker, the service and both clients are ready.
        while not (first := consumer.consume(1, 0.1)) or first[0].error() is not None:
            assert time.monotonic() < end_s, "the first record did not come"
        sent, found = 0, list[float]()
        start_s = time.time()
        end_s = start_s + count / per_s + 30
        while len(found) < count and time.time() < end_s:
            while sent < min(count, (time.time() - start_s) * per_s):
                send(producer, sent, max(time.time(), start_s + sent / per_s))
                sent += 1
            producer.poll(0)
            for message in consumer.consume(1000, 0.002):
                if message.error() is None:
                    found.append(time.time() * 1000 - int(message.value() or b""))
        consumer.close()
        assert len(found) == count, f"{len(found):,} of {count:,} came"
        return sorted(found)


def pending(count: int) -> Figures:
    with serving() as (bootstrap, service):

        def until_pending() -> float:
            start_s = time.monotonic()
            wait_for(lambda: service.value("penstock_delay_pending") == count, "the index", 0.1)
            return time.monotonic() - start_s

        produce(bootstrap, count, round((time.time() + 86_400) * 1000))
        after_s = until_pending()
        first_mb = resident_mb([service.address().pid])
        service.kill()
        warm_s = until_pending()
        warm_mb = resident_mb([service.address().pid])
        for each in service.folder.glob("index.sqlite*"):
            each.unlink()
        service.kill()
        rebuilt_s = until_pending()
        rebuilt_mb = resident_mb([service.address().pid])
        waiting = f"{count:,} pending, "
        return [
            (waiting + "indexed so long after the last was sent, s", after_s, ""),
            (waiting + "back after a kill, s", warm_s, "<= 10"),
            (waiting + "back without the store, s", rebuilt_s, "<= 60"),
            (waiting + "memory MB", max(first_mb, warm_mb, rebuilt_mb), "<= 150"),
        ]


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench delay")
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--behind", type=int, default=10, help="seconds")
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path, help="also write the figures to this file, as JSON")
    options = parser.parse_args(argv)
    described, found = about(), Figures()
    for measure, size in (
        (moved, options.records),
        (late, options.seconds),
        (behind, options.behind),
        (pending, options.pending),
    ):
        if size:
            figures = measure(size)
            for figure, value, aim in figures:
                missed = ", missed" if is_missed(value, aim) else ""
                print(f"{figure}: {value:,.1f}" + (f" (aim: {aim}{missed})" if aim else ""))
            found += figures
    if options.out:
        options.out.write_text(json.dumps({"about": described, "figures": found}, indent=1) + "\n")
