"""`penstock sql` and `penstock shell`, with a broker and a local Spark that ends with the
command.
"""

import csv
import io
import json
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from fastavro import parse_schema, schemaless_writer

from clients.librdkafka import LibrdkafkaClient
from clients.protocol import Record
from peers.penstock import PenstockBroker
from peers.process import wait_until
from support.commands.penstock_command import QUICK, penstock, started
from support.commands.warm_command import Answer, WarmCommand

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]
ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}


@pytest.fixture(scope="module")
def broker() -> Iterator[PenstockBroker]:
    with PenstockBroker() as found:
        client = LibrdkafkaClient(found.bootstrap)
        for topic in ("events", "named", "orders", "followed", "upper"):
            client.create_topic(topic, 1)
        client.produce("upper", [Record(b'{"Offset": "mine", "Key": "own"}', b"k")])
        client.produce("named", [Record(b'{"user": {"first-name": "Ada"}, "@id": 1, "a`b": 2}')])
        produce(client, "events", [("a", 1), ("b", 2), ("a", 3)])
        client.produce("orders", [Record(each, b"k") for each in (*map(encoded, ORDERS), b"\x02")])
        client.close()
        yield found


ORDERS = [{"id": 1, "note": 'said "no",\nthen yes'}, {"id": 2, "note": None}]


def encoded(order: object) -> bytes:
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(ORDER), order)
    return out.getvalue()


def produce(client: LibrdkafkaClient, topic: str, events: list[tuple[str, int]]) -> None:
    rows = [{"id": i, "amount": n} for i, n in events]
    client.produce(topic, [Record(json.dumps(each).encode()) for each in rows])


@dataclass(frozen=True)
class Shop:
    """A broker with topics, and a `penstock` command to query them."""

    broker: PenstockBroker
    command: WarmCommand

    def called(self, *words: str, typed: str = "") -> Answer:
        return self.command(*words, "-b", self.broker.bootstrap, *QUICK, typed=typed)

    def sql(self, query: str, *options: str) -> str:
        answer = self.called("sql", query, *options)
        assert answer.exit_code == 0, answer.stderr
        return answer.stdout


@pytest.fixture(scope="module")
def shop(broker: PenstockBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder = tmp_path_factory.mktemp("command")
    with WarmCommand(folder) as command:
        yield Shop(broker, command)
    assert (folder / "err").read_text() == "", "Spark is quiet to its end"
    assert not [*folder.glob("penstock-error-*")], "no failure was an internal error"


def test_a_query_prints_a_table_json_or_csv(shop: Shop) -> None:
    query = "select id, count(*) as n from events group by id order by id"
    assert shop.sql(query, "--format", "json") == '{"id":"a","n":2}\n{"id":"b","n":1}\n'
    assert [*csv.reader(io.StringIO(shop.sql(query, "--format", "csv")))] == [
        ["id", "n"],
        ["a", "2"],
        ["b", "1"],
    ]
    table = [line.split() for line in shop.sql(query).splitlines()]
    assert [each for each in table if len(each) == 2][-2:] == [["a", "2"], ["b", "1"]]


def test_fields_of_json_may_have_any_name(shop: Shop) -> None:
    found = shop.sql("select user.`first-name`, `@id`, `a``b` from named", "--format", "json")
    assert json.loads(found) == {"first-name": "Ada", "@id": 1, "a`b": 2}


def test_columns_that_share_a_name_keep_their_values(shop: Shop) -> None:
    query = "select a.amount, b.amount from events a join events b on a.amount = b.amount - 2"
    found = csv.reader(io.StringIO(shop.sql(query, "--format", "csv")))
    assert [*found] == [["amount", "amount"], ["1", "3"]]


def test_a_field_wins_over_a_column_that_differs_only_in_case(shop: Shop) -> None:
    found = shop.sql("select offset, Key from upper", "--format", "json")
    assert json.loads(found) == {"offset": "mine", "Key": "own"}


def test_a_result_may_be_parquet(shop: Shop, tmp_path: Path) -> None:
    into = tmp_path / "answer"
    shop.sql("select id, amount from events", "--format", "parquet", "--output", str(into))
    found = pq.read_table(into).sort_by("amount").to_pylist()
    assert found == [
        {"id": "a", "amount": 1},
        {"id": "b", "amount": 2},
        {"id": "a", "amount": 3},
    ]
    again = shop.called(
        "sql", "select id from events", "--format", "parquet", "--output", str(into)
    )
    assert again.exit_code == 1
    assert "already exists" in again.stderr


def test_avro_is_queried_with_a_schema_file(shop: Shop, tmp_path: Path) -> None:
    schema = tmp_path / "order.avsc"
    schema.write_text(json.dumps(ORDER))
    reported = shop.sql(
        "select id, note, key, _error from orders order by offset",
        *("--values", "avro", "--schema", str(schema), "--format", "csv"),
    )
    assert [*csv.reader(io.StringIO(reported, newline=""))] == [
        ["id", "note", "key", "_error"],
        ["1", 'said "no",\nthen yes', "k", ""],
        ["2", "", "k", ""],
        ["", "", "k", "the value is not avro of its schema"],
    ]
    missing = shop.called("sql", "select 1 from orders", "--values", "avro")
    assert (missing.exit_code, "format avro: needs a schema" in missing.stderr) == (2, True)


def test_a_query_without_topic_is_an_error(shop: Shop) -> None:
    unknown = penstock("sql", "select * from nothing", "-b", shop.broker.bootstrap)
    assert unknown.returncode == 2
    assert "the query names no topic; there are events" in unknown.stderr
    wrong = shop.called("sql", "select nothing from events")
    assert wrong.exit_code == 1
    (line,) = wrong.stderr.splitlines()
    assert line.startswith("penstock: [UNRESOLVED_COLUMN")
    assert "`nothing` cannot be resolved. Did you mean" in line


def test_a_query_can_follow_new_records(broker: PenstockBroker, tmp_path: Path) -> None:
    client = LibrdkafkaClient(broker.bootstrap)
    produce(client, "followed", [("a", 1)])
    query = "select id, amount from followed where amount > 0"
    options = ["--follow", "--format", "csv", "-b", broker.bootstrap, *QUICK]
    following = started(tmp_path, "sql", query, *options)

    def lines(count: int) -> None:
        def enough() -> bool:
            assert following.poll() is None, (tmp_path / "err").read_text()[-2000:]
            return len((tmp_path / "out").read_text().splitlines()) >= count

        wait_until(enough, 120, f"{count} lines")

    try:
        lines(2)
        produce(client, "followed", [("b", 0), ("c", 3)])
        lines(3)
        following.send_signal(signal.SIGINT)
        assert following.wait(60) == 0
    finally:
        if following.poll() is None:
            following.kill()
            following.wait()
        client.close()
    assert (tmp_path / "out").read_text().splitlines() == ["id,amount", "a,1", "c,3"]
    assert (tmp_path / "err").read_text() == "stopped\n"


def test_a_shell_has_session_topics_and_functions(shop: Shop) -> None:
    typed = (
        "events = topic('events')\n"
        "print('sum', events.agg(F.sum('amount')).first()[0])\n"
        "print('streams', stream('events').isStreaming, spark.version > '4')\n"
        "print('jars', spark.read.format('penstock').option("
        f"'kafka.bootstrap.servers', '{shop.broker.bootstrap}')"
        ".option('subscribe', 'orders').load().count())\n"
    )
    result = shop.called("shell", typed=typed)
    assert result.exit_code == 0, result.stderr
    for line in ("sum 6", "streams True True", "jars 3"):
        assert line in result.output
