"""The pipelines of examples/, each run end to end on a broker with generated data."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from access_lines import lines

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import LATEST, Record
from peers.penstock import SOURCE, PenstockBroker
from penstock.spark.pipeline.failure import first_lines

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
ROOT = Path(__file__).parents[2]
PROJECTS = (
    "access_log",
    "user_sessions",
    "host_metrics",
    "dedup",
    "orders_payments",
    "customers",
)
TOPICS = [
    "access-log",
    "access-log-minutes",
    "access-log-pages",
    "access-log-dead",
    "activity",
    "activity-dead",
    "sessions",
    "metrics",
    "metrics-minutes",
    "metrics-dead",
    "alerts",
    "events",
    "events-once",
    "events-dead",
    "orders",
    "payments",
    "orders-paid",
    "customers",
    "customers-dead",
]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LINES = [line for _, line in islice(lines(3, 60, NOON, broken_every=50), 600)]


def at(minutes: float) -> str:
    return (NOON + timedelta(minutes=minutes)).isoformat()


class Ran:
    """All examples after one run, and the topics that they wrote."""

    def __init__(self, client: LibrdkafkaClient, folder: Path, said: str) -> None:
        self.client, self.folder, self.said = client, folder, said

    def rows(self, topic: str) -> list[dict[str, Any]]:
        return [json.loads(each.value or b"null") for each in self.records(topic)]

    def records(self, topic: str) -> list[Record]:
        count = self.client.offset(topic, 0, LATEST)
        return self.client.fetch(topic, 0, (0, count))[0] if count else []


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    folder = tmp_path_factory.mktemp("examples")
    for name in PROJECTS:
        shutil.copytree(ROOT / "examples" / name, folder / name)
    database(folder / "customers" / "shop.db")
    with PenstockBroker() as broker:
        client = LibrdkafkaClient(broker.bootstrap)
        for topic in TOPICS:
            client.create_topic(topic, 1)
        fill(client)
        said = run(broker.bootstrap, [folder / name for name in PROJECTS])
        yield Ran(client, folder, said)
        client.close()


def run(bootstrap: str, projects: list[Path]) -> str:
    command = [sys.executable, "-m", "support.spark.run_projects", bootstrap]
    ended = subprocess.run(
        [*command, *map(str, projects)],
        env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT / 'tests'}"},
        cwd=projects[0].parent,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ended.returncode == 0, first_lines(ended.stderr)
    return ended.stdout


def database(path: Path) -> None:
    connection = sqlite3.connect(path)
    for table in ("customers", "customers_copy"):
        connection.execute(
            f"create table {table} (id integer primary key, name text, city text, version integer)"
        )
    connection.execute(
        "insert into customers values (1, 'Ada', 'London', 1), (2, 'Max', 'Kiel', 2), "
        "(3, null, 'Rome', 3)"
    )
    connection.commit()
    connection.close()


def fill(client: LibrdkafkaClient) -> None:
    client.produce("access-log", [Record(each.encode()) for each in LINES])
    clicks = [
        ("ann", 0, "/"),
        ("ann", 4, "/cart"),
        ("ann", 30, "/"),
        ("bob", 1, "/"),
        ("z", 90, "/"),
    ]
    write(client, "activity", [{"user": u, "at": at(m), "page": p} for u, m, p in clicks])
    client.produce("activity", [Record(b"{broken")])
    loads = [("web1", 0.1, 0.95), ("web1", 0.5, 0.97), ("web2", 0.2, 0.5), ("web1", 30, 0.1)]
    client.produce("metrics", [Record(f"{h},{at(m)},{c}".encode()) for h, m, c in loads])
    sent = [("a", 0), ("b", 1), ("a", 2), ("c", 3), ("b", 4), ("a", 5)]
    write(client, "events", [{"id": i, "at": at(m), "amount": m} for i, m in sent])
    orders = [{"order_id": str(n), "total": 10.0 * n, "ordered_at": at(n)} for n in range(1, 5)]
    write(client, "orders", orders)
    payments = [("1", 10.0, 20), ("2", 5.0, 30), ("3", 30.0, 200), ("9", 1.0, 5)]
    write(
        client,
        "payments",
        [{"payment_of": of, "paid": paid, "paid_at": at(m)} for of, paid, m in payments],
    )


def write(client: LibrdkafkaClient, topic: str, rows: list[dict[str, Any]]) -> None:
    client.produce(topic, [Record(json.dumps(each).encode()) for each in rows])


@pytest.mark.row("A168")
def test_access_logs_become_figures_per_minute(ran: Ran) -> None:
    expected: dict[str, Counter[str]] = defaultdict(Counter)
    pages: Counter[tuple[str, str]] = Counter()
    for line in (each for each in LINES if not each.startswith("upstream")):
        words = line.split()
        minute = datetime.strptime(words[3], "[%d/%b/%Y:%H:%M:%S").strftime("%Y-%m-%d %H:%M")  # noqa: DTZ007
        expected[minute]["requests"] += 1
        expected[minute]["errors"] += words[8].startswith("5")
        expected[minute]["bytes"] += int(words[9])
        pages[minute, words[6]] += 1
    found = {each["minute"]: each for each in ran.rows("access-log-minutes")}
    # The last minute may still be open.
    assert set(found) == set(sorted(expected)[: len(found)])
    assert len(found) >= len(expected) - 2
    for minute, row in found.items():
        assert {name: row[name] for name in ("requests", "errors", "bytes")} == expected[minute]
        assert 0 < row["p95_seconds"] < 10
    for row in ran.rows("access-log-pages"):
        assert row["requests"] == pages[row["minute"], row["path"]]


def test_invalid_lines_become_dead_letters_with_their_reason(ran: Ran) -> None:
    dead = ran.records("access-log-dead")
    assert [each.value for each in dead] == [
        each.encode() for each in LINES if each.startswith("upstream")
    ]
    headers = dict(dead[0].headers)
    assert headers["penstock-error"] == b"the value is not access-log of the combined log format"
    assert (headers["penstock-origin-topic"], headers["penstock-origin-offset"]) == (
        b"access-log",
        b"49",
    )


@pytest.mark.row("A168")
def test_a_pause_ends_a_session(ran: Ran) -> None:
    found = [(each["user"], each["pages"], each["entered_at"]) for each in ran.rows("sessions")]
    assert sorted(found) == [("ann", 1, "/"), ("ann", 2, "/"), ("bob", 1, "/")]
    assert [each.value for each in ran.records("activity-dead")] == [b"{broken"]


@pytest.mark.row("A168")
def test_a_busy_minute_raises_an_alert(ran: Ran) -> None:
    minutes = {(each["host"], each["cpu"], each["peak"]) for each in ran.rows("metrics-minutes")}
    assert minutes == {("web1", 0.96, 0.97), ("web2", 0.5, 0.5)}
    assert [each["text"] for each in ran.rows("alerts")] == ["web1 was busy: 96 % of its CPU"]


def test_a_duplicate_event_is_passed_on_once(ran: Ran) -> None:
    assert sorted((each["id"], each["amount"]) for each in ran.rows("events-once")) == [
        ("a", 0),
        ("b", 1),
        ("c", 3),
    ]


def test_orders_are_joined_with_their_payments_in_time(ran: Ran) -> None:
    found = {each["order_id"]: each["whole"] for each in ran.rows("orders-paid")}
    assert found == {"1": True, "2": False}


def test_a_table_is_copied_to_a_topic_and_back(ran: Ran) -> None:
    assert [each.key for each in ran.records("customers")] == [b"1", b"2", b"3"]
    connection = sqlite3.connect(ran.folder / "customers" / "shop.db")
    copied = connection.execute("select * from customers_copy order by id").fetchall()
    connection.close()
    assert copied == [(1, "Ada", "London", 1), (2, "Max", "Kiel", 2)]
    (dead,) = ran.records("customers-dead")
    assert json.loads(dead.value or b"")["city"] == "Rome"
    assert b"'named' is broken" in dict(dead.headers)["penstock-error"]


def test_the_lag_of_a_source_equals_that_of_its_group(ran: Ran) -> None:
    assert "done customers" in ran.said
    assert "lag=0" in ran.said
