"""`produce` and `consume` in all their forms, against a broker in this process."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from penstock.cli.main import main
from penstock.client.transaction import TransactionMustAbort
from penstock.client.transactional_producer import TransactionalProducer
from penstock.testing.broker import EmbeddedBroker

Penstock = Callable[..., Result]
_numbers = count()
TIME = "1700000000000"


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    settings = {"group.initial.rebalance.delay.ms": "0", "num.partitions": "3"}
    with EmbeddedBroker(settings=settings) as broker:
        yield broker.bootstrap


@pytest.fixture
def penstock(bootstrap: str) -> Penstock:
    def run(*words: str, given: bytes = b"") -> Result:
        return CliRunner().invoke(main, words, input=given, env={"PENSTOCK_BOOTSTRAP": bootstrap})

    return run


@pytest.fixture
def topic(penstock: Penstock) -> str:
    name = f"records-{next(_numbers)}"
    assert penstock("topic", "create", name, "--partitions", "1").exit_code == 0
    return name


@pytest.fixture
def five(penstock: Penstock, topic: str) -> str:
    """A topic with the values 0 to 4, a second apart."""
    for number in range(5):
        at = str(int(TIME) + 1000 * number)
        given = b'{"n": %d}\n' % number
        options = ("-k", f"k{number}", "-H", f"h={number}", "-t", at)
        assert penstock("produce", topic, *options, given=given).exit_code == 0
    return topic


def printed(result: Result, code: int = 0) -> list[str]:
    assert result.exit_code == code, result.output
    return result.stdout.splitlines()


def test_lines_without_keys_are_spread_over_partitions(penstock: Penstock) -> None:
    name = f"records-{next(_numbers)}"
    lines = b"".join(b"line %d\n" % number for number in range(3000))
    penstock("produce", name, "--create-topic", given=lines)
    found = Counter(printed(penstock("consume", name, "--format", r"%p\n")))
    assert sum(found.values()) == 3000
    assert len(found) == 3, f"sticky batches reach every partition: {found}"


def test_a_record_is_printed_in_every_format(penstock: Penstock, five: str) -> None:
    row = {
        "topic": five,
        "partition": 0,
        "offset": 4,
        "timestamp": "2023-11-14T22:13:24.000Z",
        "timestamp_ms": 1_700_000_004_000,
        "key": "k4",
        "value": '{"n": 4}',
        "headers": [{"key": "h", "value": "4"}],
    }
    newest = ("consume", five, "--last", "1")
    assert printed(penstock(*newest)) == ['{"n": 4}']
    assert printed(penstock(*newest, "-k", "-H", "-t", "--offsets", "-s", "|")) == [
        '2023-11-14T22:13:24.000Z|0:4|h=4|k4|{"n": 4}'
    ]
    assert json.loads(penstock(*newest, "--format", "json").stdout) == row
    decoded = row | {"value": {"n": 4}, "value_format": "json"}
    assert json.loads(penstock(*newest, "-d", "json", "--format", "json").stdout) == decoded
    yaml = penstock(*newest, "--format", "yaml").stdout
    assert yaml.startswith(f"---\ntopic: {five}\npartition: 0\noffset: 4\n")
    template = r"%t %p %o %T{iso} %k %s %h %S\n"
    assert printed(penstock(*newest, "--format", template)) == [
        f'{five} 0 4 2023-11-14T22:13:24.000Z k4 {{"n": 4}} h=4 8'
    ]


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (("-o", "beginning"), [0, 1, 2, 3, 4]),
        (("-o", "end"), []),
        (("-o", "2"), [2, 3, 4]),
        (("-o", "-2"), [3, 4]),
        (("-o", "+1", "-u", "3"), [1, 2]),
        (("-o", "@1700000002000"), [2, 3, 4]),
        (("-o", "@2023-11-14T22:13:23Z"), [3, 4]),
        (("-o", "+2s"), [2, 3, 4]),
        (("-u", "+2s"), [0, 1]),
        (("-o", "-1h"), []),
        (("-n", "2"), [0, 1]),
        (("--last", "2"), [3, 4]),
        (("--filter", "value.n >= 3"), [3, 4]),
        (("--filter", 'key == "k1" || headers["h"] == "2"'), [1, 2]),
        (("--filter", "value.n >= 1", "-n", "1"), [1]),
        (("--filter", 'timestamp >= timestamp("2023-11-14T22:13:24Z")'), [4]),
    ],
)
def test_reading_starts_and_stops_where_requested(
    penstock: Penstock, five: str, options: tuple[str, ...], numbers: list[int]
) -> None:
    found = printed(penstock("consume", five, *options, "--format", r"%o\n"))
    assert [int(each) for each in found] == numbers


def test_several_topics_and_patterns_are_read(penstock: Penstock, five: str) -> None:
    other = f"{five}-other"
    penstock("produce", other, "--create-topic", given=b"x\n")
    assert len(printed(penstock("consume", five, other))) == 6
    assert len(printed(penstock("consume", "--regex", f"{five}(-o.*)?"))) == 6
    nothing = penstock("consume", "--regex", "no-such.*")
    assert nothing.exit_code == 2
    assert "it matches no topic" in nothing.stderr
    assert "is not a regular expression" in penstock("consume", "--regex", "(").stderr


@pytest.mark.row("A034", "A035")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_continues_at_its_committed_offset(
    penstock: Penstock, five: str, protocol: str
) -> None:
    words = ("consume", five, "-g", five, "-X", f"group.protocol={protocol}")
    template = ("--format", r"%o\n")
    assert printed(penstock(*words, "-n", "2", *template)) == ["0", "1"]
    assert printed(penstock(*words, *template)) == ["2", "3", "4"]
    assert printed(penstock(*words, *template)) == []
    (row,) = printed(penstock("group", "describe", five, "--format", "json"))
    assert '"offset":5' in row.replace(" ", "")


def test_the_last_records_are_counted_without_transaction_markers(
    penstock: Penstock, topic: str
) -> None:
    for value in (b"a\n", b"b\n", b"c\n", b"d\n"):
        penstock("produce", topic, "-p", "0", "--transactional-id", topic, given=value)
    assert printed(penstock("consume", topic, "--last", "3")) == ["b", "c", "d"]
    assert printed(penstock("consume", topic, "--last", "9")) == ["a", "b", "c", "d"]


def test_auto_commit_does_not_cover_records_that_were_not_printed(
    penstock: Penstock, five: str
) -> None:
    words = ("consume", five, "-g", f"{five}-auto", "-X", "enable.auto.commit=true")
    template = ("--format", r"%o\n")
    assert printed(penstock(*words, "-n", "2", *template)) == ["0", "1"]
    assert printed(penstock(*words, *template)) == ["2", "3", "4"]


def test_group_and_start_may_be_given_as_settings(penstock: Penstock, five: str) -> None:
    words = ("consume", five, "--format", r"%o\n", "-X", f"group.id={five}-x")
    assert printed(penstock(*words, "-n", "2")) == ["0", "1"]
    assert printed(penstock(*words)) == ["2", "3", "4"]
    alone = penstock(*words, "-p", "0")
    assert printed(alone) == ["0", "1", "2", "3", "4"]
    assert "group.id has no effect with --until, --partition and --last" in alone.stderr
    latest = ("consume", five, "-X", "auto.offset.reset=latest")
    assert printed(penstock(*latest)) == []
    assert len(printed(penstock(*latest, "-o", "3"))) == 2
    assert printed(penstock(*latest, "-g", f"{five}-y")) == []


def test_a_setting_without_effect_gives_one_warning(penstock: Penstock, topic: str) -> None:
    names = (
        "request.required.acks",
        "compresion.type",
        "nonsense",
        "nonsense",
        "linger.ms",
        "acks",
    )
    given = [word for each in names for word in ("-X", f"{each}=1")]
    done = penstock("produce", topic, *given, given=b"a\n")
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[:-1] == [
        "penstock: warning: -X: unknown setting request.required.acks; did you mean acks?",
        "penstock: warning: -X: unknown setting compresion.type; did you mean compression.type?",
        "penstock: warning: -X: unknown setting nonsense",
        "penstock: warning: -X: linger.ms has no effect here",
    ]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("compress.type=gzip", "compression.type"), ("retention.mss=1", "retention.ms")],
)
def test_an_old_name_of_a_topic_setting_gets_a_hint(
    penstock: Penstock, topic: str, given: str, meant: str
) -> None:
    for words in (("create", f"{topic}-h", "-c", given), ("alter", topic, "-c", given)):
        refused = penstock("topic", *words)
        assert refused.exit_code == 1
        assert f"Did you mean {meant!r}?" in refused.stderr


def test_several_topics_are_trimmed_by_a_pattern(penstock: Penstock, five: str) -> None:
    other = f"{five}-trimmed"
    penstock("produce", other, "--create-topic", given=b"x\ny\n")
    words = ("topic", "trim", "--regex", f"{five}(-trimmed)?", "--before", "2", "--yes")
    rows = [json.loads(each) for each in printed(penstock(*words, "--format", "json"))]
    assert [(each["topic"], each["deleted"]) for each in rows if each["deleted"]] == [
        (five, 2),
        (other, 2),
    ]
    assert len(printed(penstock("consume", five))) == 3


def test_nothing_is_trimmed_if_a_topic_lacks_the_partition(penstock: Penstock, five: str) -> None:
    larger = f"{five}-larger"
    penstock("topic", "create", larger, "--partitions", "2")
    penstock("produce", larger, "-p", "1", given=b"x\n")
    words = ("topic", "trim", larger, five, "--before", "end", "--partition", "1", "--yes")
    refused = penstock(*words)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert len(printed(penstock("consume", larger))) == 1


def test_a_group_starts_at_the_end_if_asked(penstock: Penstock, five: str) -> None:
    assert printed(penstock("consume", five, "-g", f"{five}-end", "-o", "end")) == []
    refused = penstock("consume", five, "-g", five, "-o", "3")
    assert refused.exit_code == 2
    assert "with --group, --offset is beginning or end" in refused.stderr


@pytest.mark.row("A110")
def test_a_transaction_is_written_completely_or_not_at_all(penstock: Penstock, topic: str) -> None:
    words = ("produce", topic, "--transactional-id", topic, "-i", "json")
    good, bad = b'{"value":"a"}\n{"value":"b"}\n', b'{"value":"c"}\nbroken\n'
    assert "produced 2 records" in penstock(*words, given=good).stderr
    failed = penstock(*words, given=bad)
    assert failed.exit_code == 2
    assert failed.stderr.startswith("penstock: line 2: ")
    assert "produced" not in failed.stderr, "nothing was written"
    assert printed(penstock("consume", topic, "--committed")) == ["a", "b"]
    skipping = penstock(*words, "--on-error", "skip", given=bad)
    assert skipping.exit_code == 5
    assert printed(penstock("consume", topic, "--committed")) == ["a", "b", "c"]


def test_records_of_a_failed_commit_are_not_reported_as_produced(
    penstock: Penstock, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_producer: TransactionalProducer) -> None:
        raise TransactionMustAbort("the coordinator cannot commit")

    monkeypatch.setattr(TransactionalProducer, "commit", fails)
    failed = penstock("produce", topic, "--transactional-id", topic, given=b"a\n")
    assert (failed.exit_code, failed.stderr) == (1, "penstock: the coordinator cannot commit\n")
    assert printed(penstock("consume", topic, "--committed")) == []


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (("--acks", "0"), [None, None]),
        (("--acks", "1"), [0, 1]),
        (("--no-idempotent",), [0, 1]),
        (("-X", "acks=1"), [0, 1]),
        (("--profile", "classic", "--codec", "zstd"), [0, 1]),
        (("--profile", "classic", "--transactional-id", "classic"), [0, 1]),
    ],
)
def test_acknowledgements_are_as_requested(
    penstock: Penstock, topic: str, options: tuple[str, ...], offsets: list[int | None]
) -> None:
    words = ("produce", topic, *options, "--format", "json")
    rows = [json.loads(each) for each in printed(penstock(*words, given=b"a\nb\n"))]
    assert [each["offset"] for each in rows] == offsets
    assert printed(penstock("consume", topic)) == ["a", "b"]


@pytest.mark.parametrize(
    "options",
    [
        ("--acks", "1", "--idempotent"),
        ("--acks", "0", "--transactional-id", "x"),
        ("-X", "acks=7"),
        ("-i", "xml"),
        ("-i", "%o"),
        ("-i", "csv", "-Z"),
        ("-i", "json", "--key-field", "a"),
        ("--rate", "0"),
        ("-H", "h"),
    ],
)
def test_contradicting_options_are_refused(
    penstock: Penstock, topic: str, options: tuple[str, ...]
) -> None:
    refused = penstock("produce", topic, *options, given=b"a\n")
    assert refused.exit_code == 2, refused.output
    assert printed(penstock("consume", topic)) == []


def test_a_rate_limit_is_kept(penstock: Penstock, topic: str) -> None:
    began = time.monotonic()
    penstock("produce", topic, "--rate", "20", given=b"a\n" * 12)
    assert time.monotonic() - began >= 0.5
    assert len(printed(penstock("consume", topic))) == 12


def test_a_rate_limit_applies_to_all_files_together(
    penstock: Penstock, topic: str, tmp_path: Path
) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(6)]
    for each in files:
        each.write_text("a\n")
    began = time.monotonic()
    penstock("produce", topic, *map(str, files), "--rate", "10")
    assert time.monotonic() - began >= 0.5


def test_files_in_every_form_are_read(penstock: Penstock, topic: str, tmp_path: Path) -> None:
    table, lines = tmp_path / "a.csv", tmp_path / "b.csv"
    table.write_text("key,n\nk,1\n")
    lines.write_text("key,n\nl,2\n,3,4\n")
    failed = penstock("produce", topic, str(table), str(lines), "-i", "csv")
    assert failed.exit_code == 5
    assert f"penstock: {lines}: line 3: 3 fields, the header has 2" in failed.stderr
    assert printed(penstock("consume", topic, "-k")) == ['k\t{"n":"1"}', 'l\t{"n":"2"}']
    ndjson = b'{"id": 7}\n'
    penstock("produce", topic, "-i", "ndjson", "--key-field", "id", given=ndjson)
    penstock("produce", topic, "-i", "%k=%s", given=b"a=b\n")
    assert printed(penstock("consume", topic, "-k", "-o", "2")) == ['7\t{"id": 7}', "a\tb"]


def test_broken_line_17_is_named_and_the_lines_before_it_are_written(
    penstock: Penstock, topic: str, tmp_path: Path
) -> None:
    file = tmp_path / "records.jsonl"
    file.write_text('{"value":"v"}\n' * 16 + "{\n" + '{"value":"v"}\n')
    failed = penstock("produce", topic, str(file), "-i", "json")
    assert failed.exit_code == 5
    assert "penstock: line 17: " in failed.stderr
    assert "produced 16 records" in failed.stderr
    skipped = penstock("produce", topic, str(file), "-i", "json", "--on-error", "skip")
    assert skipped.exit_code == 5
    assert "produced 17 records" in skipped.stderr
    assert len(printed(penstock("consume", topic))) == 33


def test_values_are_decoded_and_undecodable_ones_are_named(
    penstock: Penstock, topic: str, tmp_path: Path
) -> None:
    row = {"value_base64": "gaFhAQ=="}  # MessagePack of {"a": 1}
    given = json.dumps(row).encode() + b'\n{"value":"{\\"b\\": 2}"}\n'
    penstock("produce", topic, "-i", "json", given=given)
    assert printed(penstock("consume", topic, "-d", "auto")) == ['{"a":1}', '{"b":2}']
    found = penstock("consume", topic, "-d", "json")
    assert found.exit_code == 5
    assert f"penstock: value of {topic}-0 at 0: not JSON" in found.stderr
    wanted = ("--filter", "value.a == 1", "-d", "auto", "--format", r"%o\n")
    assert printed(penstock("consume", topic, *wanted)) == ["0"]
    for options in (("-d", "avro"), ("-d", "protobuf")):
        assert "needs a --schema or a --registry" in penstock("consume", topic, *options).stderr
    schema = tmp_path / "s.avsc"
    schema.write_text("{")
    refused = penstock("consume", topic, "-d", "avro", "--schema", str(schema))
    assert refused.exit_code == 2
    assert "s.avsc: not an Avro schema" in refused.stderr


def test_internal_topics_are_decoded(penstock: Penstock, five: str) -> None:
    printed(penstock("consume", five, "-g", five))
    rows = printed(penstock("consume", "__consumer_offsets", "--format", "json"))
    keys = [json.loads(each)["key"] for each in rows]
    assert any(each["data"] == {"group": five, "topic": five, "partition": 0} for each in keys)
    assert any(
        '"topic"' in each for each in printed(penstock("consume", "__consumer_offsets", "-k"))
    )


def test_an_unknown_topic_gets_a_hint(penstock: Penstock, five: str) -> None:
    missing = penstock("consume", f"{five}s")
    assert missing.exit_code == 1
    assert f"Did you mean {five!r}?" in missing.stderr
    assert missing.stdout == ""
    assert f"Did you mean {five!r}?" in penstock("produce", f"{five}s", given=b"a\n").stderr


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--format", "%z"), "%z is unknown"),
        (("--format", "xml"), "neither text, wide, json, yaml nor a template"),
        (("--filter", "value >"), "is not CEL"),
        (("--filter", "nope == 1"), "there are topic, partition"),
        (("--last", "1", "--follow"), "--last goes without"),
        (("-g", "g", "-p", "0"), "--group goes without"),
        (("-X", "isolation.level=some", "-g", "g"), "isolation.level is 'some'"),
    ],
)
def test_wrong_options_are_refused(
    penstock: Penstock, five: str, options: tuple[str, ...], reason: str
) -> None:
    refused = penstock("consume", five, *options)
    assert refused.exit_code == 2, refused.output
    assert reason in refused.stderr
    assert refused.stdout == ""


def test_a_closed_pipe_and_a_full_disk_are_handled(bootstrap: str, five: str) -> None:
    command = f"{sys.executable} -m penstock consume {five} -b {bootstrap}"
    for redirect, error in (
        ("-f -q | head -1", ""),
        (">/dev/full", "penstock: cannot write the output: No space left on device\n"),
    ):
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {command} {redirect}"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr == error


def test_produce_reads_the_decoded_output_of_consume(penstock: Penstock, five: str) -> None:
    rows = penstock("consume", five, "-d", "auto", "--format", "json").stdout_bytes
    copy = f"{five}-copy"
    assert penstock("produce", copy, "--create-topic", "-i", "json", given=rows).exit_code == 0
    values = [msgspec.json.decode(each) for each in printed(penstock("consume", copy))]
    assert values == [{"n": number} for number in range(5)]
