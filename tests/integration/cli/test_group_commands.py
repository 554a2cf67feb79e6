"""`penstock group` against a broker in this process."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer, TopicPartition

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker

QUIET = {"log_level": 0}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """A broker with ten records in `t`; group `g` has committed that it read six of them."""
    settings = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "2"}
    with EmbeddedBroker(settings=settings) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        for number in range(10):
            producer.produce("t", f"{number}")
        assert producer.flush(10) == 0
        consumer = member(broker.bootstrap, "g")
        while not consumer.assignment():
            consumer.poll(0.05)
        consumer.commit(offsets=[TopicPartition("t", 0, 6)], asynchronous=False)
        consumer.close()
        yield broker.bootstrap


def member(bootstrap: str, group: str, **more: str) -> Consumer:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": "someone",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
            **more,
        }
    )
    consumer.subscribe(["t"])
    return consumer


def run(bootstrap: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["group", *words, "--bootstrap", bootstrap])


def reported(bootstrap: str, *words: str) -> list[dict[str, object]]:
    result = run(bootstrap, *words, "--format", "json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def offsets(described: dict[str, object]) -> list[dict[str, Any]]:
    found = described["offsets"]
    assert isinstance(found, list)
    return found


def test_groups_are_listed(bootstrap: str) -> None:
    groups = {each["id"]: each for each in reported(bootstrap, "list")}
    assert groups["g"] == {
        "id": "g",
        "protocol_type": "consumer",
        "state": "Empty",
        "type": "classic",
    }
    assert "Empty" in run(bootstrap, "list").stdout


def test_a_description_shows_the_lag(bootstrap: str) -> None:
    (described,) = reported(bootstrap, "describe", "g")
    (row,) = offsets(described)
    assert 0 <= row.pop("lag_seconds") < 60
    assert row == {
        "topic": "t",
        "partition": 0,
        "offset": 6,
        "end": 10,
        "lag": 4,
        "metadata": "",
        "member": None,
        "client": None,
        "host": None,
    }
    assert run(bootstrap, "describe", "g").stdout.startswith("g: Empty, 0 members, lag 4 (")


def test_a_description_shows_the_owner_of_each_partition(bootstrap: str) -> None:
    consumer = member(bootstrap, "h")
    while not consumer.assignment():
        consumer.poll(0.05)
    text = run(bootstrap, "describe", "h").stdout
    consumer.close()
    assert text.startswith("h: Stable, 1 member, assignor range, lag 0\n")
    assert "someone  127.0.0.1  1" in text


def test_a_reset_is_shown_before_it_is_executed(bootstrap: str) -> None:
    asked = ("reset", "r", "--topic", "t", "--to", "-3")
    shown = run(bootstrap, *asked)
    assert shown.stderr == "nothing was changed; repeat with --execute\n"
    assert reported(bootstrap, *asked) == [
        {
            "group": "r",
            "topic": "t",
            "partition": 0,
            "before": None,
            "after": 7,
            "executed": False,
        }
    ]
    run(bootstrap, *asked, "--execute")
    assert reported(bootstrap, "reset", "r", "--to", "beginning", "--execute") == [
        {
            "group": "r",
            "topic": "t",
            "partition": 0,
            "before": 7,
            "after": 0,
            "executed": True,
        }
    ]
    assert run(bootstrap, "delete", "r", "r").stdout == "deleted r\n"
    assert "r" not in {each["id"] for each in reported(bootstrap, "list")}


def test_a_missing_group_is_an_error(bootstrap: str) -> None:
    result = run(bootstrap, "describe", "none")
    assert result.exit_code != 0
    assert "GROUP_ID_NOT_FOUND" in result.stderr
    result = run(bootstrap, "reset", "none", "--to", "end", "--execute")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "group none has no offsets" in result.stderr


def test_a_group_of_the_consumer_protocol_is_described(bootstrap: str) -> None:
    consumer = member(bootstrap, "k", **{"group.protocol": "consumer"})
    while not consumer.assignment():
        consumer.poll(0.05)
    consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
    text = run(bootstrap, "describe", "k").stdout
    (described,) = reported(bootstrap, "describe", "k")
    consumer.close()
    assert text.startswith("k: Stable, 1 member, assignor uniform, epoch 2, lag 3 (")
    head, row = text.splitlines()[-2:]
    assert " ".join(head.split()) == "MEMBER INSTANCE CLIENT HOST PARTITIONS EPOCH GETS GIVES UP"
    assert row.split()[1:] == ["-", "someone", "127.0.0.1", "1", "2", "-", "-"]
    group = described["group"]
    assert isinstance(group, dict)
    assert (group["type"], group["epoch"], group["assignment_epoch"]) == ("consumer", 2, 2)
    (only,) = group["members"]
    assert only["partitions"] == only["place"]["target"] == [["t", 0]]
    assert (only["place"]["epoch"], only["place"]["topics"]) == (2, ["t"])
    (held,) = offsets(described)
    assert (held["offset"], held["end"], held["lag"], held["client"]) == (7, 10, 3, "someone")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_the_last_rebalances_are_shown_with_their_reasons(bootstrap: str, protocol: str) -> None:
    group = f"rebalanced/{protocol}"
    consumer = member(bootstrap, group, **{"group.protocol": protocol})
    while not consumer.assignment():
        consumer.poll(0.05)
    consumer.close()
    (log,) = reported(bootstrap, "describe", group, "--rebalances")
    assert (log["group"], log["under_way"]) == (group, None)
    rebalances = log["rebalances"]
    assert isinstance(rebalances, list)
    came, went = rebalances
    assert " joined" in came["reason"]
    assert " left" in went["reason"]
    assert (came["members"], went["members"]) == (1, 0)
    assert came["generation"] < went["generation"]
    assert 0 <= came["duration_ms"] < 20_000
    head, *rows = run(bootstrap, "describe", group, "--rebalances").stdout.splitlines()
    assert head.split() == ["ENDED", "GENERATION", "MEMBERS", "SECONDS", "REASON"]
    assert [row.endswith((came["reason"], went["reason"])) for row in rows] == [True, True]


def test_the_rebalances_of_a_missing_group_are_refused(bootstrap: str) -> None:
    result = run(bootstrap, "describe", "none", "--rebalances")
    assert result.exit_code == 1
    assert "GROUP_ID_NOT_FOUND" in result.stderr


def test_a_broker_without_an_http_listener_is_an_error() -> None:
    with EmbeddedBroker(settings={"penstock.http.listen": ""}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
        producer.produce("t", b"v")
        assert producer.flush(10) == 0
        assert (
            run(broker.bootstrap, "reset", "g", "-t", "t", "--to", "end", "--execute").exit_code
            == 0
        )
        result = run(broker.bootstrap, "describe", "g", "--rebalances")
    assert result.exit_code == 2
    assert "set penstock.http.listen" in result.stderr


def test_a_partition_without_a_commit_is_shown_with_its_owner(bootstrap: str) -> None:
    consumer = member(bootstrap, "silent")
    try:
        while not consumer.assignment():
            consumer.poll(0.05)
        (row,) = reported(bootstrap, "describe", "silent")
        (held,) = offsets(row)
        assert (held["offset"], held["end"], held["lag"]) == (None, 10, None)
        assert (held["client"], held["host"]) == ("someone", "127.0.0.1")
        assert (
            "t      0          -       10   -    -        someone  127.0.0.1"
            in run(bootstrap, "describe", "silent").stdout
        )
        shown = run(bootstrap, "reset", "silent", "--to", "end", "-t", "t")
        assert shown.exit_code == 0
        assert "group silent is Stable: --execute would fail" in shown.stderr
        refused = run(bootstrap, "reset", "silent", "--to", "end", "-t", "t", "--execute")
        assert refused.exit_code == 1
        assert refused.stderr == (
            "penstock: group silent: NON_EMPTY_GROUP (it is Stable: stop its consumers first)\n"
        )
    finally:
        consumer.close()


@pytest.mark.parametrize(("to", "side", "taken"), [("1000", "end", 10), ("-1000", "beginning", 0)])
def test_an_offset_outside_the_partition_gives_a_warning(
    bootstrap: str, to: str, side: str, taken: int
) -> None:
    result = run(bootstrap, "reset", "nobody", "--to", to, "-t", "t")
    assert result.exit_code == 0, result.output
    wanted = int(to) if int(to) > 0 else 10 + int(to)
    assert result.stderr.splitlines()[0] == (
        f"penstock: warning: t-0 has no offset {wanted}; using its {side}, {taken}"
    )


def test_if_one_group_cannot_be_reset_no_group_is_reset(bootstrap: str) -> None:
    run(bootstrap, "reset", "kept", "--to", "3", "-t", "t", "--execute")
    refused = run(bootstrap, "reset", "kept", "none", "--to", "end", "--execute")
    assert (refused.exit_code, refused.stdout) == (2, "")
    (described,) = reported(bootstrap, "describe", "kept")
    assert offsets(described)[0]["offset"] == 3


def test_offsets_are_reset_from_a_file(bootstrap: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("t,0,4\n")
    (row,) = reported(bootstrap, "reset", "filed", "--from-file", str(file), "--execute")
    assert (row["after"], row["executed"]) == (4, True)
