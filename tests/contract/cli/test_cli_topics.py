"""`penstock topic`, as scripts use it."""

import json
from collections.abc import Callable

from click.testing import CliRunner, Result

from peers.penstock import PenstockBroker
from penstock.cli.main import main

Penstock = Callable[..., Result]


def test_a_topic_is_created_shown_altered_and_deleted(
    penstock_command: Penstock, topic: str
) -> None:
    made = penstock_command("topic", "create", topic, "-p", "2", "-c", "retention.ms=86400000")
    assert (made.exit_code, made.stdout) == (0, f"created {topic}\n"), made.output

    listed = penstock_command("topic", "list").stdout.splitlines()
    assert listed[0].split() == ["NAME", "PARTITIONS", "REPLICAS"]
    assert [topic, "2", "1"] in [line.split() for line in listed]

    altered = penstock_command(
        "topic",
        "alter",
        topic,
        "-p",
        "3",
        "-c",
        "cleanup.policy=compact",
        "--unset",
        "retention.ms",
    )
    assert (altered.exit_code, altered.stdout) == (0, f"altered {topic}\n"), altered.output

    shown = penstock_command("topic", "describe", topic).stdout.splitlines()
    assert shown[0].startswith(f"{topic}  id ")
    assert shown[1] == "cleanup.policy=compact  DYNAMIC_TOPIC_CONFIG"
    assert shown[2].split() == ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "END"]
    assert [line.split()[0] for line in shown[3:]] == ["0", "1", "2"]

    deleted = penstock_command("topic", "delete", topic)
    assert (deleted.exit_code, deleted.stdout) == (0, f"deleted {topic}\n")
    assert topic not in penstock_command("topic", "list").stdout


def test_settings_do_not_change_if_the_new_partition_count_is_refused(
    penstock_command: Penstock, topic: str
) -> None:
    penstock_command("topic", "create", topic, "-p", "2")
    words = ("topic", "alter", topic, "-c", "retention.ms=1000")
    for fewer in ("1", "2"):
        refused = penstock_command(*words, "-p", fewer)
        assert refused.exit_code == 1
        assert "INVALID_PARTITIONS" in refused.stderr
        assert "retention.ms" not in penstock_command("topic", "describe", topic).stdout
    assert penstock_command(*words, "-p", "3").exit_code == 0
    assert "retention.ms=1000" in penstock_command("topic", "describe", topic).stdout


def test_json_is_an_object_per_line(penstock_command: Penstock, topic: str) -> None:
    made = json.loads(penstock_command("topic", "create", topic, "--format", "json").stdout)
    assert (made["name"], made["partition_count"], made["created"]) == (topic, 1, True)
    rows = penstock_command("topic", "list", "--format", "json").stdout.splitlines()
    (row,) = [each for each in map(json.loads, rows) if each["name"] == topic]
    assert (row["id"], row["partition_count"], row["internal"]) == (made["id"], 1, False)
    described = penstock_command("topic", "describe", topic, "--all-configs", "--format", "json")
    shown = json.loads(described.stdout)
    (partition,) = shown["partitions"]
    assert (partition["start_offset"], partition["end_offset"]) == (0, 0)
    assert partition["replicas"] == partition["isr"] == [partition["leader"]]
    configs = {each["name"]: (each["value"], each["source"]) for each in shown["configs"]}
    assert configs["cleanup.policy"] == ("delete", "DEFAULT_CONFIG")


def test_a_topic_that_is_only_validated_is_not_created(
    penstock_command: Penstock, topic: str
) -> None:
    checked = penstock_command("topic", "create", topic, "--validate-only")
    assert (checked.exit_code, checked.stdout) == (0, f"{topic} can be created\n")
    assert penstock_command("topic", "describe", topic).exit_code == 1


def test_a_refusal_exits_with_1(penstock_command: Penstock, topic: str) -> None:
    penstock_command("topic", "create", topic)
    again = penstock_command("topic", "create", topic)
    assert again.exit_code == 1
    assert again.stdout == ""
    assert "TOPIC_ALREADY_EXISTS" in again.stderr
    as_json = penstock_command("topic", "create", topic, "--format", "json")
    error = json.loads(as_json.stderr)
    assert (error["error"], error["code"]) == ("TOPIC_ALREADY_EXISTS", 36)
    wrong = penstock_command("topic", "alter", topic, "-c", "retention.ms=soon", "--format", "json")
    assert (wrong.exit_code, json.loads(wrong.stderr)["error"]) == (1, "INVALID_CONFIG")


def test_a_partial_success_exits_with_5(penstock_command: Penstock, topic: str) -> None:
    penstock_command("topic", "create", topic)
    result = penstock_command("topic", "delete", topic, f"{topic}-none")
    assert (result.exit_code, result.stdout) == (5, f"deleted {topic}\n")
    assert f"topic {topic}-none: UNKNOWN_TOPIC_OR_PARTITION" in result.stderr
    assert penstock_command("topic", "delete", topic, f"{topic}-none").exit_code == 1


def test_a_broker_is_found_by_its_directory(penstock: PenstockBroker) -> None:
    found = CliRunner().invoke(main, ["topic", "list", "--dir", str(penstock.directory)])
    assert found.exit_code == 0, found.output


def test_an_unreachable_broker_exits_with_3() -> None:
    words = ["topic", "list", "-b", "127.0.0.1:1", "--timeout", "0.2", "--format", "json"]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 3
    assert json.loads(result.stderr)["error"] == "NETWORK_EXCEPTION"
