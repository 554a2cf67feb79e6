"""Kafka Streams, unmodified: exactly-once counts despite kills, and a topology with all
features.
"""

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from clients.brokers import Target
from peers import java
from peers.penstock import PenstockBroker
from peers.process import Process, free_ports, last_lines

pytestmark = [pytest.mark.peer, pytest.mark.timeout(120)]
JARS = "streams-4.3.1"
WAIT_S = 30
QUIET = {"log_level": 0, "reconnect.backoff.max.ms": 100}
WORDS = ["sluice", "weir", "turbine", "head", "race", "gate", "spillway"]
PARTITIONS = 2


class App:
    """A Kafka Streams program that can be killed and restarted with the state that it left."""

    def __init__(
        self, program: str, bootstrap: str, name: str, folder: Path, *topics: str, **settings: str
    ) -> None:
        folder.mkdir(exist_ok=True)
        given = {
            "bootstrap.servers": bootstrap,
            "application.id": name,
            "state.dir": str(folder / "state"),
            "commit.interval.ms": "100",
            "statestore.cache.max.bytes": "0",
            "consumer.auto.offset.reset": "earliest",
            "reconnect.backoff.max.ms": "100",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
        pairs = [f"{key}={value}" for key, value in given.items()]
        command = java.source_command(program, *topics, *pairs, jars=JARS)
        self.process = Process(name, command, folder)
        self._runs = 0

    def start(self) -> None:
        """Starts the program and waits until it is RUNNING."""
        self._runs = self._text().count("state RUNNING")
        self.process.start()
        self.process.wait_until(lambda: self._text().count("state RUNNING") > self._runs, WAIT_S)

    def kill(self) -> None:
        self.process.kill()

    def _text(self) -> str:
        output = self.process.output
        return output.read_text(errors="replace") if output.exists() else ""


@pytest.fixture
def started() -> Iterator[Callable[[App], App]]:
    apps: list[App] = []

    def start(app: App) -> App:
        apps.append(app)
        app.start()
        return app

    yield start
    for app in apps:
        app.kill()


def make(bootstrap: str, *topics: str) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": bootstrap, **QUIET})
    for made in admin.create_topics([NewTopic(each, PARTITIONS) for each in topics]).values():
        made.result(WAIT_S)
    return admin


def write(bootstrap: str, topic: str, lines: list[str]) -> None:
    """Writes each line exactly once: the producer is idempotent and retries while the broker is
    down.
    """
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **QUIET})
    for number, line in enumerate(lines):
        producer.produce(topic, line, partition=number % PARTITIONS)
    assert producer.flush(WAIT_S) == 0


class Reader:
    """What a read_committed consumer has seen of a topic, by key and in order."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.values: dict[str, list[str]] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "nobody",
                "isolation.level": "read_committed",
                **QUIET,
            }
        )
        self._consumer.assign([TopicPartition(topic, each, 0) for each in range(PARTITIONS)])

    def until(self, done: Callable[[dict[str, list[str]]], bool], app: App) -> None:
        deadline = time.monotonic() + WAIT_S
        while not done(self.values):
            reported = f"{self.values}\n{last_lines(app.process.output)}"
            assert time.monotonic() < deadline, reported
            message = self._consumer.poll(0.2)
            if message is not None and not message.error():
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                self.values.setdefault(key.decode(), []).append(value.decode())

    def close(self) -> None:
        self._consumer.close()


def counts_of(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.split())


def reached(lines: list[str]) -> Callable[[dict[str, list[str]]], bool]:
    wanted = counts_of(lines).total()
    return lambda seen: sum(map(len, seen.values())) >= wanted


def exactly(lines: list[str]) -> dict[str, list[str]]:
    """The expected counts: each once and in order, without gaps or repeats."""
    return {word: [str(n + 1) for n in range(count)] for word, count in counts_of(lines).items()}


def some_lines(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(dice.choices(WORDS, k=3)) for _ in range(count)]


@pytest.mark.row("A009")
def test_words_are_counted_exactly_once(
    target: Target, topic: str, tmp_path: Path, started: Callable[[App], App]
) -> None:
    lines, result = some_lines(1, 100), f"{topic}-counts"
    admin = make(target.bootstrap, topic, result)
    write(target.bootstrap, topic, lines)
    app = started(
        App(
            "WordCount",
            target.bootstrap,
            f"app-{topic}",
            tmp_path / "app",
            *(topic, result),
            processing_guarantee="exactly_once_v2",
        )
    )
    reader = Reader(target.bootstrap, result)
    reader.until(reached(lines), app)
    reader.close()
    assert reader.values == exactly(lines)
    store = f"app-{topic}-KSTREAM-AGGREGATE-STATE-STORE-0000000003"
    assert cleanup(admin, f"{store}-changelog") == ("compact", "604800000")
    assert cleanup(admin, f"{store}-repartition") == ("delete", "-1")


def cleanup(admin: AdminClient, topic: str) -> tuple[str, str]:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    configs = admin.describe_configs([resource])[resource].result(WAIT_S)
    return configs["cleanup.policy"].value, configs["retention.ms"].value


def test_counts_stay_exact_when_the_application_and_the_broker_are_killed(
    tmp_path: Path, started: Callable[[App], App]
) -> None:
    lines = some_lines(2, 400)
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), folder=tmp_path / "broker") as broker:
        make(broker.bootstrap, "lines", "counts")
        app = started(
            App(
                "WordCount",
                broker.bootstrap,
                "counting",
                tmp_path / "app",
                *("lines", "counts"),
                processing_guarantee="exactly_once_v2",
                group_instance_id="one",
            )
        )
        reader = Reader(broker.bootstrap, "counts")
        write(broker.bootstrap, "lines", lines[:100])
        reader.until(reached(lines[:20]), app)
        app.kill()
        write(broker.bootstrap, "lines", lines[100:200])
        app.start()
        reader.until(reached(lines[:120]), app)
        write(broker.bootstrap, "lines", lines[200:300])
        broker.kill(0)
        broker.start(0)
        write(broker.bootstrap, "lines", lines[300:])
        reader.until(reached(lines), app)
        reader.close()
        assert reader.values == exactly(lines)


def test_a_topology_joins_repartitions_windows_and_restores_state(
    target: Target, topic: str, tmp_path: Path, started: Callable[[App], App]
) -> None:
    orders, cities, result = f"{topic}-orders", f"{topic}-cities", f"{topic}-turnover"
    admin = make(target.bootstrap, orders, cities, result)
    dice, hour_ms = random.Random(3), round(time.time()) // 3600 * 3_600_000
    homes = {f"c{number}": dice.choice(["Bergen", "Oslo", "Voss"]) for number in range(20)}
    table = Producer({"bootstrap.servers": target.bootstrap, **QUIET})
    for customer, city in homes.items():
        table.produce(cities, city, customer, timestamp=hour_ms)
    assert table.flush(WAIT_S) == 0

    sums: Counter[str] = Counter()

    def order(count: int, minute: int) -> None:
        for _ in range(count):
            customer, amount = dice.choice(list(homes)), dice.randrange(1, 100)
            start_ms = hour_ms + minute * 60_000
            sums[f"{homes[customer]}@{start_ms}"] += amount
            table.produce(orders, f"{amount}", customer, timestamp=start_ms + 5)
        assert table.flush(WAIT_S) == 0

    def app(folder: str) -> App:
        return App(
            "Orders",
            target.bootstrap,
            f"app-{topic}",
            tmp_path / folder,
            *(orders, cities, result),
            repartition_purge_interval_ms="100",
            num_stream_threads="2",
            session_timeout_ms="6000",
        )

    def last_are(seen: dict[str, list[str]]) -> bool:
        return {key: int(values[-1]) for key, values in seen.items()} == sums

    first = started(app("first"))
    reader = Reader(target.bootstrap, result)
    order(60, minute=1)
    reader.until(last_are, first)
    first.process.stop()
    order(60, minute=1)
    second = started(app("second"))  # this instance has its state only in the changelogs
    order(60, minute=2)
    reader.until(last_are, second)
    repartition = f"app-{topic}-KSTREAM-AGGREGATE-STATE-STORE-0000000006-repartition"
    purged = Consumer({"bootstrap.servers": target.bootstrap, "group.id": "nobody", **QUIET})
    deadline = time.monotonic() + WAIT_S
    while not any(
        purged.get_watermark_offsets(TopicPartition(repartition, each), WAIT_S)[0]
        for each in range(PARTITIONS)
    ):
        assert time.monotonic() < deadline, "what was read from it is deleted"
    purged.close()
    reader.close()
    assert repartition in admin.list_topics(timeout=WAIT_S).topics
