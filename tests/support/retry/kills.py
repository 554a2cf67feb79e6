"""Schedules records while the service, the broker and the store are killed at random, by seed."""

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from peers.penstock import PenstockBroker
from peers.process import free_ports
from peers.servers import Servers
from penstock.retry.address_file import FILE, ServiceAddress

EARLY_MS = 1
LIMIT_S = 90.0


@dataclass
class Kills:
    """One run; `check` returns what went wrong."""

    seed: int
    records: int
    spread_s: float
    """All records are due within this many seconds."""
    kills: int
    due_ms: dict[bytes, int] = field(default_factory=dict)
    seen: Counter[bytes] = field(default_factory=Counter)
    early: list[tuple[bytes, float]] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    """The killed processes in order; a kill that found no process is repeated and does not
    count.
    """
    victims: list[str] = field(default_factory=list)

    def run(self, folder: Path, store: Servers | None, url: str) -> None:
        (port,) = free_ports(1)
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{port}",
            "penstock.delay.store": url,
            "group.initial.rebalance.delay.ms": "0",
        }
        options = [
            each for name, value in settings.items() for each in ("--set", f"{name}={value}")
        ]
        with PenstockBroker("--port", str(port), *options, folder=folder) as broker:
            self._prepare(broker.bootstrap)
            self._run(broker, store)

    def check(self) -> None:
        lost = self.due_ms.keys() - self.seen.keys()
        twice = [value for value, count in self.seen.items() if count > 1]
        found = f"seed {self.seed}, killed {self.killed}"
        assert len(self.killed) == self.kills, f"{self.kills} kills were wanted; {found}"
        assert set(self.killed) == set(self.victims), f"not all of {self.victims}; {found}"
        assert not lost, f"{len(lost)} lost, such as {min(lost)!r}; {found}"
        assert not twice, f"{len(twice)} twice, such as {twice[0]!r}; {found}"
        assert not self.early, f"{len(self.early)} early, such as {self.early[0]}; {found}"

    def _prepare(self, bootstrap: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        later = {"penstock.delay.to": "orders"}
        for made in admin.create_topics(
            [NewTopic("orders", 2), NewTopic("later", 2, config=later)]
        ).values():
            made.result()

    def _run(self, broker: PenstockBroker, store: Servers | None) -> None:
        dice = random.Random(self.seed)
        config = {"bootstrap.servers": broker.bootstrap, "reconnect.backoff.max.ms": 200}
        self._produce(Producer({**config, "enable.idempotence": True}), dice)
        consumer = Consumer(
            {
                **config,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        consumer.subscribe(["orders"])
        victims: list[tuple[str, Callable[[], bool]]] = [
            ("service", lambda: _kill_service(broker)),
            ("broker", lambda: _again(broker)),
        ]
        if store is not None:
            victims.append(("store", lambda: _again(store)))
        dice.shuffle(victims)
        self.victims = [name for name, _ in victims]
        end_s = time.monotonic() + LIMIT_S + self.spread_s
        next_s = time.monotonic() + 1
        while time.monotonic() < end_s:
            self._consume(consumer)
            if len(self.killed) < self.kills and time.monotonic() > next_s:
                name, kill = victims[len(self.killed) % len(victims)]
                began_s = time.monotonic()
                self.killed += [name] * kill()
                end_s += time.monotonic() - began_s  # some take half a minute to come back
                next_s = time.monotonic() + dice.uniform(0.2, self.spread_s / self.kills)
            elif len(self.killed) == self.kills and len(self.seen) == self.records:
                break
        settle_s = time.monotonic() + 1
        while time.monotonic() < settle_s:  # duplicates would arrive late
            self._consume(consumer)
        consumer.close()

    def _produce(self, producer: Producer, dice: random.Random) -> None:
        start_ms = time.time() * 1000
        for number in range(self.records):
            due_ms = round(start_ms + dice.uniform(500, self.spread_s * 1000))
            value = b"%d" % number
            self.due_ms[value] = due_ms
            headers: dict[str, str | bytes | None] = {"penstock-deliver-at": str(due_ms)}
            producer.produce("later", value, b"k%d" % (number % 50), headers=headers)
        assert producer.flush(30) == 0

    def _consume(self, consumer: Consumer) -> None:
        for message in consumer.consume(500, 0.05):
            if message.error() is None:
                value, now_ms = message.value() or b"", time.time() * 1000
                self.seen[value] += 1
                if now_ms < self.due_ms[value] - EARLY_MS:
                    self.early.append((value, self.due_ms[value] - now_ms))


def _kill_service(broker: PenstockBroker) -> bool:
    """Kills the service; returns whether it ran, since it may just be starting."""
    try:
        text = (broker.directory / "delay" / FILE).read_bytes()
        os.kill(msgspec.json.decode(text, type=ServiceAddress).pid, signal.SIGKILL)
    except OSError:
        return False
    return True


def _again(server: Servers) -> bool:
    server.kill(0)
    if not isinstance(server, PenstockBroker):
        server.output(0).write_text("")  # removes the "ready" of the previous start
    server.start(0)
    return True
