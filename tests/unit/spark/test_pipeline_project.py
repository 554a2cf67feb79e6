"""Projects and their flows: how they are read, and errors reported before Spark starts."""

from pathlib import Path

import pytest

from penstock.errors import ConfigError
from penstock.spark.pipeline.flow_spec import check_repeatable
from penstock.spark.pipeline.project import load_project
from penstock.spark.pipeline.settings import pairs, spark_settings
from penstock.spark.pipeline.template import write_project

SPEC = "name: p\nstorage: st\n"
FLOW = "flows:\n  - name: f\n    from: {topic: a}\n    to: {topic: b}\n"


def project(folder: Path, spec: str = SPEC, own: str = FLOW) -> Path:
    (folder / "spark-pipeline.yml").write_text(spec)
    (folder / "penstock.yml").write_text(own)
    return folder


def test_init_writes_a_valid_project(tmp_path: Path) -> None:
    write_project(tmp_path / "new", "new")
    found = load_project(tmp_path / "new")
    assert found.spec.name == "new"
    assert [each.name for each in found.own.flows] == ["events-in", "events-to-lake"]
    assert found.own.topics["events"].partitions == 2
    assert found.storage == (tmp_path / "new" / "pipeline-storage").as_uri()
    with pytest.raises(ConfigError, match="is not empty"):
        write_project(tmp_path / "new", "new")


def test_brokers_are_named_by_the_caller_the_environment_or_the_project(tmp_path: Path) -> None:
    found = load_project(project(tmp_path, own="bootstrap: c:3\n" + FLOW))
    assert found.bootstrap("a:1", {"PENSTOCK_BOOTSTRAP": "b:2"}) == "a:1"
    assert found.bootstrap(None, {"PENSTOCK_BOOTSTRAP": "b:2"}) == "b:2"
    assert found.bootstrap(None, {}) == "c:3"


@pytest.mark.parametrize(
    ("flow", "words"),
    [
        (
            "{name: f, from: {}, to: {topic: b}}",
            "from: needs exactly one of topic, files, table; none",
        ),
        ("{name: f, from: {topic: a, files: x}, to: {topic: b}}", "topic and files is given"),
        (
            "{name: f, from: {topic: a, format: xml}, to: {topic: b}}",
            "from.format: 'xml' is not one",
        ),
        ("{name: f, from: {topic: a, format: json}, to: {topic: b}}", "from.schema: json needs"),
        ("{name: f, from: {topic: a, format: text, schema: i int}, to: {topic: b}}", "of its own"),
        ("{name: f, from: {topic: a}, to: {table: t, key: id}}", "to.url: to.table needs it"),
        ("{name: f, from: {topic: a}, to: {table: t, url: u}}", "to.key: a table needs"),
        ("{name: f, from: {table: t, url: u}, to: {topic: b}}", "from.increasing: from.table"),
        ("{name: f, from: {topic: a}, to: {topic: b, partition_by: [d]}}", "to.partition_by"),
        ("{name: f, from: {topic: a}, to: {topic: b}, sql: select 1}", "must read from {source}"),
        (
            "{name: f, from: {topic: a, format: avro, schema: no.avsc}, to: {topic: b}}",
            "no.avsc: No such file",
        ),
        (
            "{name: f, from: {files: a, format: avro, schema: x}, to: {topic: b}}",
            "avro is only for topics",
        ),
        (
            "{name: f, from: {topic: a}, to: {topic: b}, sql: 'select * from {source} where x = {2}'}",  # noqa: E501
            "sql: write other braces than those of {source} twice",
        ),
        (
            "{name: f, from: {topic: a}, to: {topic: b}, sql: 'select * from {source} where x = }'}",  # noqa: E501
            "sql: write other braces",
        ),
        ("{name: f g, from: {topic: a}, to: {topic: b}}", "the name may have"),
        ("{name: f, from: {topic: a}, to: {topc: b}}", "unknown field `topc`"),
        (
            "{name: f, from: {topic: a}, to: {topic: b}, expect: [{name: n, condition: c, otherwise: x}]}",  # noqa: E501
            "otherwise 'x' is not one of keep, drop, fail",
        ),
        (
            "{name: f, from: {topic: a}, to: {topic: b}, expect: [{name: n >= 0, condition: c}, {name: n < 0, condition: d}]}",  # noqa: E501
            "expect 'n < 0': its rows would be counted and sent on as 'n_0', like those of 'n >=",
        ),
        (
            "{name: f, from: {topic: a, format: text}, to: {topic: b}, dead_letters: d, expect: [{name: Unreadable, condition: c}]}",  # noqa: E501
            "sent on as 'unreadable', like values that cannot be read",
        ),
        (
            "{name: f, from: {topic: a}, to: {topic: b}, dead_letters: d, expect: [{name: n, condition: at <= now ()}]}",  # noqa: E501
            "expect 'n': now has another result where rows are sent to dead_letters",
        ),
    ],
)
def test_an_error_in_a_flow_names_its_field(tmp_path: Path, flow: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_project(project(tmp_path, own=f"flows: [{flow}]"))
    assert words in str(caught.value)
    assert "penstock.yml" in str(caught.value)


def test_sql_may_name_columns_of_its_source_and_have_braces_twice(tmp_path: Path) -> None:
    sql = "select {source[id]} from {source} where x rlike '[0-9]{{2}}'"
    flow = f'{{name: f, from: {{topic: a}}, to: {{topic: b}}, sql: "{sql}"}}'
    assert load_project(project(tmp_path, own=f"flows: [{flow}]")).own.flows[0].sql == sql


@pytest.mark.parametrize(
    "condition",
    [
        "d = Current_Date",
        "at < current_timestamp()",
        "x < rand()",
        "unix_timestamp() > 1",
        "monotonically_increasing_id() % 2 = 0",
        "spark_partition_id () = 0",
        "day < date 'tomorrow'",
        "at < TIMESTAMP ' now UTC '",
        "at < cast('today' as timestamp)",
        "day > date('yesterday')",
        "at <= 'now'",
    ],
)
def test_a_condition_must_be_deterministic(condition: str) -> None:
    with pytest.raises(ConfigError, match="has another result"):
        check_repeatable("n", condition)


@pytest.mark.parametrize(
    "condition",
    [
        "now > 1",
        "operand(x) = 1",
        "unix_timestamp(at) > 1",
        "current_dates is null",
        "due <> 'today' and due = 'now'",
        "day < date '2026-01-01'",
    ],
)
def test_columns_and_other_functions_are_deterministic(condition: str) -> None:
    check_repeatable("n", condition)


@pytest.mark.parametrize(
    ("spec", "own", "words"),
    [
        ("name: p\n", FLOW, "missing required field `storage`"),
        (SPEC + "color: red\n", FLOW, "unknown field `color`"),
        (SPEC + "name: q\n", FLOW, "line 3: name is there twice, first on line 1"),
        (SPEC, "", "nothing to run"),
        (SPEC + "libraries: [{glob: {include: 'a/*/b.py'}}]\n", "", "neither a file nor FOLDER"),
        (SPEC, FLOW + FLOW.partition("\n")[2], "two flows are named 'f'"),
        (
            SPEC,
            (
                "flows: [{name: f, from: {topic: a, format: text}, to: {topic: b}, "
                "dead_letters: d}, {name: f.unreadable, from: {topic: d}, to: {topic: e}}]"
            ),
            "flows 'f' and 'f.unreadable' both have a query, and a checkpoint, named",
        ),
        (SPEC, "flows: [", "penstock.yml"),
        (
            SPEC,
            "flows: [{name: f, from: {topic: a, options: {shareGroup: g}}, to: {topic: b}}]",
            "shareGroup cannot be used in a pipeline",
        ),
    ],
)
def test_a_mistake_in_a_project_is_an_error(
    tmp_path: Path, spec: str, own: str, words: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_project(project(tmp_path, spec, own))
    assert words in str(caught.value)


def test_an_error_about_a_folder_without_project_says_how_to_create_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="penstock pipeline init"):
        load_project(tmp_path)


def test_only_tables_need_a_catalog(tmp_path: Path) -> None:
    write_project(tmp_path / "new", "new")
    assert load_project(tmp_path / "new").makes_tables()
    examples = Path(__file__).parents[3] / "examples"
    assert not load_project(examples / "access_log").makes_tables()


def test_settings_of_the_caller_win() -> None:
    made = spark_settings("n", "local[2]", {"a": "project", "b": "project"}, {"a": "caller"})
    assert (made["a"], made["b"], made["spark.master"]) == ("caller", "project", "local[2]")
    assert made["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in spark_settings("n", "yarn", {}, {})
    with pytest.raises(ConfigError, match="not NAME=VALUE"):
        pairs(["a"], "--conf")
