"""Pure parts of commands: figures of benchmarks, verdicts, plans, targets, bars, secrets."""

from pathlib import Path

import pytest

from penstock.cli.bench_figures import BenchRun, line, percentile
from penstock.cli.frame.progress import count_line, duration, progress_line, seconds_left
from penstock.cli.group.target import duration_ms, read_offsets, since
from penstock.cli.reassign_plan import moves_of, read_plan, with_factor
from penstock.cli.rebalance import kind
from penstock.cli.redaction import redacted_settings, redacted_text
from penstock.cli.topic.chosen import matching
from penstock.cli.topic.create import assignment
from penstock.cli.verification import number_of, value_of, verdict
from penstock.client.configs import Resource
from penstock.client.group_reset import Target
from penstock.client.partition_scope import parse_scope
from penstock.client.position import Position, Since
from penstock.client.replication_throttle import (
    FOLLOWERS,
    LEADERS,
    RATES,
    throttle,
    throttled_replicas,
    together,
)
from penstock.config.resource_type import ConfigResourceType
from penstock.controller.balance import PlannedMove
from penstock.controller.broker_locations import known_locations
from penstock.errors import ConfigError
from penstock.types import BrokerId, TopicPartition

ALONE = known_locations({}, None)
ROW = '{"topic":"t","partition":0,"replicas":[1]}'


def test_percentiles_are_values_that_occurred() -> None:
    assert percentile([1, 2, 3, 4], 0.5) == 3
    assert percentile([1, 2, 3, 4], 0.99) == 4
    assert percentile([], 0.5) == 0


def test_progress_without_a_known_total_is_a_count() -> None:
    assert count_line("produced to t", 120_000, 2.0) == "produced to t: 120,000  60,000/s"
    assert count_line("produced to t", 0, 0.0) == "produced to t: 0  0/s"


@pytest.mark.parametrize("first", ["t,0,x", "t,0,1.5", "t,zero,5"])
def test_a_first_line_with_a_mistake_is_not_taken_for_a_header(tmp_path: Path, first: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(f"{first}\nt,1,5\n")
    with pytest.raises(ConfigError, match="line 1 is not topic,partition,offset"):
        read_offsets(path, "g")
    path.write_text("TOPIC,PARTITION,NEW-OFFSET\nt,1,5\n")
    assert read_offsets(path, "g") == {TopicPartition("t", 1): 5}


def test_replicas_throttled_by_an_operator_stay_throttled() -> None:
    topic, broker = (
        Resource(ConfigResourceType.TOPIC, "t"),
        Resource(ConfigResourceType.BROKER, "1"),
    )
    moved = throttled_replicas([(TopicPartition("t", 0), [BrokerId(1)], [BrokerId(2)])])
    limits = throttle(moved, [BrokerId(1)], 1000)
    former: dict[Resource, dict[str, str | None]] = {
        topic: {LEADERS: "*", FOLLOWERS: "3:1"},
        broker: dict.fromkeys(RATES),
    }
    assert together(limits, former) == {
        topic: {LEADERS: "*", FOLLOWERS: "3:1,0:2"},
        broker: dict.fromkeys(RATES, "1000"),
    }


def test_a_run_is_reported_as_kafka_does() -> None:
    run = BenchRun()
    run.add(90, 90 * 1024, 1.0)
    run.add(10, 10 * 1024, 11.0)
    run.seconds = 2.0
    row = run.row(test="produce")
    assert (row["records_per_second"], row["latency_avg_ms"]) == (50.0, 2.0)
    assert line(row) == (
        "100 records, 50.0 records/sec (0.05 MB/sec), 2.0 ms avg latency, 11.0 ms max latency, "
        "1.0 ms 50th, 11.0 ms 95th, 11.0 ms 99th, 11.0 ms 99.9th."
    )


def test_lost_repeated_and_disordered_records_are_noticed() -> None:
    assert verdict(range(4), {0: [0, 2], 1: [1, 3]}).is_good
    bad = verdict(range(4), {0: [2, 0], 1: [1, 1]})
    assert (bad.missing, bad.repeated, bad.disordered) == ((3,), (1,), (0,))
    assert not bad.is_good


def test_records_of_other_runs_are_left_alone() -> None:
    assert number_of("a1", value_of("a1", 17)) == 17
    for other in (value_of("b2", 17), b"", None, b"a1", b"a1 x"):
        assert number_of("a1", other) is None


def test_progress_shows_percentage_and_time_left() -> None:
    assert seconds_left(1, 4, 10.0) == 30.0
    assert seconds_left(0, 4, 10.0) is None
    assert progress_line("copying", 1, 2, 90.0) == (
        "copying [" + "#" * 15 + "." * 15 + "]  50%  1 min 30 s left"
    )
    assert progress_line("copying", 2, 2, 90.0).endswith("] 100%")
    assert (duration(5), duration(3700)) == ("5 s", "1 h 01 min")


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("90m", 5_400_000),
        ("2h", 7_200_000),
        ("PT2H30M", 9_000_000),
        ("P1D", 86_400_000),
        ("PT1.5S", 1500),
    ],
)
def test_durations_are_parsed(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["30000d", "PT99999999999999999999H"])
def test_a_duration_reaching_before_1970_means_the_beginning(text: str) -> None:
    assert since(text) == Target(Position(Since.EPOCH, 0))


@pytest.mark.parametrize("text", ["", "2", "h", "P", "PT", "-2h"])
def test_a_malformed_duration_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="--by-duration"):
        duration_ms(text)


def test_partitions_are_named_with_their_topic() -> None:
    assert parse_scope(["a", "b:0,2", "b:3"]) == {"a": None, "b": [0, 2, 3]}
    with pytest.raises(ConfigError, match="a:x: must be TOPIC"):
        parse_scope(["a:x"])


def test_offsets_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text('topic,partition,offset\n"t",0,5\nt,1,6\n\n')
    assert read_offsets(file, "g") == {TopicPartition("t", 0): 5, TopicPartition("t", 1): 6}
    file.write_text("t,0,5\nt,1\n")
    with pytest.raises(ConfigError, match="line 2 is not topic,partition,offset"):
        read_offsets(file, "g")
    file.write_text("")
    with pytest.raises(ConfigError, match="has no offsets"):
        read_offsets(file, "g")


def test_a_file_with_offsets_of_several_groups_gives_each_its_own(tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text("a,t,0,3\nb,t,0,7\n")
    assert read_offsets(file, "a") == {TopicPartition("t", 0): 3}
    assert read_offsets(file, "b") == {TopicPartition("t", 0): 7}
    with pytest.raises(ConfigError, match="has no offsets of group c"):
        read_offsets(file, "c")


def test_replicas_are_added_where_there_are_fewest_and_taken_from_the_end() -> None:
    brokers = [BrokerId(each) for each in (1, 2, 3)]
    replicas = {TopicPartition("t", 0): (BrokerId(1),), TopicPartition("t", 1): (BrokerId(2),)}
    moves = with_factor(replicas, brokers, 2, ALONE)
    assert [each.after for each in moves] == [(1, 3), (2, 1)]
    back = {each.topic_partition: each.after for each in moves}
    assert [each.after for each in with_factor(back, brokers, 1, ALONE)] == [(1,), (2,)]
    with pytest.raises(ConfigError, match="the cluster has 3 brokers"):
        with_factor(replicas, brokers, 4, ALONE)


def test_replicas_on_dead_brokers_are_removed_first() -> None:
    up = [BrokerId(2), BrokerId(3)]
    replicas = {TopicPartition("t", 0): (BrokerId(1), BrokerId(2), BrokerId(3))}
    assert [each.after for each in with_factor(replicas, up, 1, ALONE)] == [(2,)]
    assert [each.after for each in with_factor(replicas, up, 2, ALONE)] == [(2, 3)]


def test_a_changed_replication_factor_keeps_workers_of_one_host_apart() -> None:
    brokers = [BrokerId(each) for each in (1, 2, 3, 4)]
    hosts = {BrokerId(each): "one" if each < 3 else "two" for each in (1, 2, 3, 4)}
    apart = known_locations(dict.fromkeys(brokers), hosts)
    one = {TopicPartition("t", each): (BrokerId(1 + each % 4),) for each in range(8)}
    for move in with_factor(one, brokers, 2, apart):
        assert {hosts[each] for each in move.after} == {"one", "two"}
    three = {TopicPartition("t", 0): (BrokerId(1), BrokerId(2), BrokerId(3))}
    assert [each.after for each in with_factor(three, brokers, 2, apart)] == [(1, 3)]


def test_a_plan_names_moves_that_copy_nothing() -> None:
    def reported(*after: int) -> str:
        before = (BrokerId(1), BrokerId(2))
        return kind(PlannedMove(TopicPartition("t", 0), before, tuple(map(BrokerId, after))))

    assert (reported(1), reported(2, 1), reported(1, 3)) == ("removed", "order", "")


def test_a_plan_is_read_and_compared(tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1],"log_dirs":["any","any"]}]}'
    )
    tp = TopicPartition("t", 0)
    targets = read_plan(file)
    assert targets == {tp: (2, 1)}
    (move,) = moves_of(targets, {tp: (BrokerId(1), BrokerId(2))})
    assert move.copied == 0
    assert moves_of(targets, {tp: (BrokerId(2), BrokerId(1))}) == []
    with pytest.raises(ConfigError, match="t-0 does not exist"):
        moves_of(targets, {})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", r"plan\.json: not a reassignment: .* `partitions`"),
        ('{"partitions":[]}', "list cannot be empty"),
        ('{"partitions":[],"version":2}', "Not supported version field value 2"),
        (f'{{"partitions":[{ROW},{ROW}]}}', "duplicate topic partitions: t-0"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}', "list cannot be empty"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}', "multiple entries for 1"),
        (f'{{"partitions":[{ROW[:-1]},"log_dirs":["any","/a"]}}]}}', "different from size"),
        (f'{{"partitions":[{ROW[:-1]},"log_dirs":["/a"]}}]}}', "names log directories of t-0"),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_plan(file)


def test_secrets_are_hidden_in_settings_and_text() -> None:
    settings = {"sasl.jaas.config": "x", "ssl.key.password": "y", "acks": "all"}
    assert redacted_settings(settings) == {
        "acks": "all",
        "sasl.jaas.config": "[hidden]",
        "ssl.key.password": "[hidden]",
    }
    for secret in (
        "ssl.key.password=hunter2",
        'password: "hunter2"',
        "sasl.jaas.config=Plain required username=a password=hunter2;",
        "postgres://user:hunter2@host/db",
        "token = hunter2",
    ):
        assert "hunter2" not in redacted_text(f"before {secret} after")


def test_topics_are_matched_by_regular_expression() -> None:
    names = ["__consumer_offsets", "orders", "orders-old"]
    assert matching(["orders.*"], names) == ["orders", "orders-old"]
    assert matching([".*"], names) == ["orders", "orders-old"]
    assert matching(["__.*"], names) == ["__consumer_offsets"]
    with pytest.raises(ConfigError, match="is not an expression"):
        matching(["("], names)


def test_assignments_are_parsed_as_kafka_writes_them() -> None:
    assert assignment("0:1,1:0,0:1") == [[0, 1], [1, 0], [0, 1]]
    for wrong in ("0:1,1", "0:0", "a", "", "-1", "2147483648"):
        with pytest.raises(ConfigError, match="--replica-assignment"):
            assignment(wrong)


@pytest.mark.parametrize(
    "text",
    [
        '{"password": "hunter"}',
        "{'ssl.keystore.password': 'hunter'}",
        r'password="a\"hunter"',
        "Authorization: Bearer hunter",
        "token: Bearer hunter",
        "basic.auth.user.info=u:hunter",
        "credential=hunter",
        "https://:hunter@host",
        "-----BEGIN PRIVATE KEY-----\nhunter\n-----END PRIVATE KEY-----",
    ],
)
def test_secrets_are_hidden_in_every_spelling(text: str) -> None:
    assert "hunter" not in redacted_text(text)


def test_a_login_to_a_registry_is_a_secret() -> None:
    name = "schema.registry.basic.auth.user.info"
    assert redacted_settings({name: "u:hunter"}) == {name: "[hidden]"}
