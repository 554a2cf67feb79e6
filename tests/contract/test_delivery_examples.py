"""The delivery examples, run as a reader would, under the failures that they promise to survive."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from clients.programs import go_program
from clients.referee import Referee
from peers.penstock import PenstockBroker
from peers.process import PeerError, Process, free_ports, wait_until

EXAMPLES = Path(__file__).parents[2] / "examples"
WAIT_S = 60


def python(example: str) -> list[str]:
    return [sys.executable, str(EXAMPLES / f"{example}.py")]


def sarama() -> list[str]:
    return go_program("per_topic_delivery", EXAMPLES / "per_topic_delivery")


PER_TOPIC = [
    pytest.param(lambda: python("per_topic_delivery"), id="python"),
    pytest.param(sarama, id="sarama", marks=pytest.mark.peer),
]


def values(bootstrap: str, topic: str) -> list[str]:
    reader = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "nobody",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    reader.assign([TopicPartition(topic, 0, 0)])
    found: list[str] = []
    while (message := reader.poll(WAIT_S)) is not None and not message.error():
        found.append((message.value() or b"").decode())
    reader.close()
    assert message is not None
    return found


def has_reached(client: Referee, topic: str, offset: int) -> bool:
    try:
        return client.offset(topic, 0, -1) > offset
    except PeerError:
        return False  # the client has not noticed yet that the broker is back


def has_reached_or_ended(
    client: Referee, topic: str, offset: int, sending: subprocess.Popen[str]
) -> bool:
    return sending.poll() is not None or has_reached(client, topic, offset)


@pytest.mark.row("A116")
@pytest.mark.parametrize("program", PER_TOPIC)
def test_a_killed_broker_may_lose_readings_but_no_payments(
    program: Callable[[], list[str]], tmp_path: Path
) -> None:
    """A program that ends before the broker was killed twice has shown nothing: on a busy machine
    two checks of its progress may be seconds apart. Then a longer one runs.
    """
    (port,) = free_ports(1)
    with PenstockBroker("--port", str(port), folder=tmp_path) as broker:
        referee, count = Referee(broker.bootstrap), 3000
        while not (reported := report_of_killed_run(program(), broker, referee, count)):
            count *= 3
        assert reported == f"{count} readings sent, {count} payments acknowledged\n"
        wanted = range(count)
        assert values(broker.bootstrap, f"payments-{count}") == [f"{each}" for each in wanted]
        readings = values(broker.bootstrap, f"readings-{count}")
        assert len(set(readings)) == len(readings)
        assert set(readings) <= {f"reading {each}" for each in wanted}
        referee.close()


def report_of_killed_run(
    program: list[str], broker: PenstockBroker, referee: Referee, count: int
) -> str:
    """What the program printed after the broker was killed twice; nothing if it ended before."""
    readings, payments = f"readings-{count}", f"payments-{count}"
    for topic in (readings, payments):
        referee.create_topic(topic)
    with subprocess.Popen(
        [*program, broker.bootstrap, readings, payments, str(count)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as sending:
        try:
            for stop_at in (200, 500):
                reached = partial(has_reached_or_ended, referee, payments, stop_at, sending)
                wait_until(reached, WAIT_S, f"{stop_at} payments")
                if sending.poll() == 0:
                    return ""
                broker.kill(0)
                broker.start(0)
            reported, complaints = sending.communicate(timeout=WAIT_S)
        finally:
            sending.kill()
    assert complaints == ""
    return reported


@pytest.mark.parametrize("program", PER_TOPIC)
def test_the_program_shows_its_usage(program: Callable[[], list[str]]) -> None:
    done = subprocess.run([*program(), "x"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "BOOTSTRAP READINGS-TOPIC PAYMENTS-TOPIC COUNT" in done.stderr
    assert len(done.stderr.splitlines()) == 1


PAYMENTS, ACCOUNTS, PARTITIONS = 6000, 7, 3


def send_payments(bootstrap: str, topic: str) -> dict[str, int]:
    """Sends payments with unique ids; returns the final balance of each account."""
    totals: dict[str, int] = {}
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for number in range(PAYMENTS):
        account = f"account {number % ACCOUNTS}"
        totals[account] = totals.get(account, 0) + number
        producer.produce(
            topic,
            f"{number}",
            account,
            partition=number % PARTITIONS,
            headers=[("id", f"payment {number}".encode())],
        )
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0
    return totals


@pytest.mark.row("A117", "A118")
def test_the_database_results_and_positions_agree_whenever_the_program_is_killed(
    tmp_path: Path, topic: str
) -> None:
    file = tmp_path / "payments.db"

    def stored() -> int:
        try:
            return int(database.execute("select count(*) from payments").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # the table does not exist yet

    settings = "--set=group.initial.rebalance.delay.ms=0"
    with PenstockBroker(settings) as broker, closing(sqlite3.connect(file)) as database:
        referee = Referee(broker.bootstrap)
        referee.create_topic(topic, partitions=PARTITIONS)
        totals = send_payments(broker.bootstrap, topic)
        # Running the sending program a second time sends everything again, as after a crash of its
        # own.
        # The broker cannot detect that: to the broker it is another producer.
        assert send_payments(broker.bootstrap, topic) == totals
        command = [*python("exactly_once_sqlite"), topic, str(file)]
        storing = Process("storing", [*command, "--bootstrap", broker.bootstrap], tmp_path)
        for kill_at in (500, 2000, 4500):
            storing.start()
            storing.wait_until(lambda: stored() > kill_at, WAIT_S)  # noqa: B023 - called here only
            storing.kill()
        ends = [(at, referee.offset(topic, at, -1)) for at in range(PARTITIONS)]
        assert sum(end for _, end in ends) == 2 * PAYMENTS
        asked = "select partition, next from positions order by partition"
        storing.start()
        storing.wait_until(lambda: database.execute(asked).fetchall() == ends, WAIT_S)
        storing.stop()
        assert stored() == PAYMENTS
        summed = "select account, sum(cents) from payments group by account"
        assert dict(database.execute(summed)) == totals
        referee.close()


def test_a_record_that_is_no_payment_ends_the_program_with_one_line(
    tmp_path: Path, topic: str
) -> None:
    with PenstockBroker("--set=group.initial.rebalance.delay.ms=0") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        producer.produce(topic, "12", "account", partition=0)
        assert producer.flush(WAIT_S) == 0
        done = subprocess.run(
            [
                *(*python("exactly_once_sqlite"), topic, str(tmp_path / "db")),
                *("--bootstrap", broker.bootstrap),
            ],
            timeout=WAIT_S,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(f"exactly_once_sqlite: {topic}-0 at 0 is no payment")
    assert len(done.stderr.splitlines()) == 1


def test_one_example_stores_the_payments_that_another_writes(tmp_path: Path) -> None:
    file = tmp_path / "payments.db"
    with (
        PenstockBroker("--set=group.initial.rebalance.delay.ms=0") as broker,
        closing(sqlite3.connect(file)) as database,
    ):
        where = [broker.bootstrap, "readings", "payments", "20"]
        subprocess.run([*python("per_topic_delivery"), *where], check=True, timeout=WAIT_S)
        command = [*python("exactly_once_sqlite"), "payments", str(file)]
        storing = Process("storing", [*command, "--bootstrap", broker.bootstrap], tmp_path)
        storing.start()

        def stored() -> int:
            try:
                return int(database.execute("select count(*) from payments").fetchone()[0])
            except sqlite3.OperationalError:
                return 0  # the table does not exist yet

        storing.wait_until(lambda: stored() == 20, WAIT_S)
        storing.stop()


def test_each_guarantee_copies_all_records(topic: str) -> None:
    with PenstockBroker("--set=group.initial.rebalance.delay.ms=0") as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(5):
            producer.produce(topic, f"record {number}", partition=0)
        assert producer.flush(WAIT_S) == 0
        for guarantee in ("at-most-once", "at-least-once", "exactly-once"):
            words = [guarantee, topic, f"{topic}-copies", "--bootstrap", broker.bootstrap]
            done = subprocess.run(
                [*python("delivery_guarantees"), *words],
                capture_output=True,
                text=True,
                timeout=WAIT_S,
                check=True,
            )
            assert done.stdout == "5 records copied\n"
