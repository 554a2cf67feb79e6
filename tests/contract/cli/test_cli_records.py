"""`penstock produce` and `penstock consume`: every record produced is consumed unchanged."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from penstock.record.compression import Codec

Penstock = Callable[..., Result]
SOURCE = Path(__file__).parents[3] / "src"


def create(penstock_command: Penstock, topic: str, *options: str) -> None:
    result = penstock_command("topic", "create", topic, "-p", "2", *options)
    assert result.exit_code == 0, result.output
    # A Kafka broker learns of a topic only after the controller has answered.
    while penstock_command("topic", "describe", topic).exit_code:
        pass


@pytest.fixture
def made(penstock_command: Penstock, topic: str) -> str:
    """A topic with two partitions."""
    create(penstock_command, topic)
    return topic


def values(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def numbers(first: int, last: int) -> bytes:
    return b"".join(b"%d\n" % number for number in range(first, last + 1))


@pytest.mark.parametrize("codec", [each.name.lower() for each in Codec])
def test_lines_come_back_in_order(penstock_command: Penstock, made: str, codec: str) -> None:
    given = numbers(1, 500)
    produced = penstock_command("produce", made, "-p", "1", "-z", codec, given=given)
    assert produced.exit_code == 0, produced.output
    assert (produced.stdout, produced.stderr) == ("", f"produced 500 records to {made}\n")
    consumed = penstock_command("consume", made)
    assert consumed.stdout.encode() == given
    assert consumed.stderr == f"consumed 500 records of {made}\n"


def test_keys_headers_times_and_tombstones_are_shown(penstock_command: Penstock, made: str) -> None:
    produced = penstock_command(
        *("produce", made, "-p", "0", "-s", ":", "-Z", "-H", "from=test", "-H", "from=again"),
        *("-t", "2026-01-02T03:04:05Z"),
        given=b"k:v\nk:\nother:a:b",
    )
    assert produced.exit_code == 0, produced.output
    options = ("--keys", "--headers", "--timestamps", "--offsets")
    assert values(penstock_command("consume", made, *options, "-s", "|")) == [
        "2026-01-02T03:04:05.000Z|0:0|from=test,from=again|k|v",
        "2026-01-02T03:04:05.000Z|0:1|from=test,from=again|k|null",
        "2026-01-02T03:04:05.000Z|0:2|from=test,from=again|other|a:b",
    ]


def test_a_record_of_any_bytes_goes_through_json_unchanged(
    penstock_command: Penstock, made: str
) -> None:
    rows: list[dict[str, object]] = [
        {"key": "k", "value": "v", "headers": [{"key": "h", "value": "1"}, {"key": "n"}]},
        {"key": None, "value": None, "timestamp_ms": 1_700_000_000_123},
        {"key_base64": "/wA=", "value": {"a": [1, 2]}},
        {"value": "é\n", "headers": [{"key": "h", "value_base64": "/w=="}]},
    ]
    given = b"".join(json.dumps(row | {"partition": 1}).encode() + b"\n" for row in rows)
    produced = penstock_command("produce", made, "-i", "json", "--format", "json", given=given)
    places = [json.loads(line) for line in values(produced)]
    assert places == [{"topic": made, "partition": 1, "offset": offset} for offset in range(4)]

    first = penstock_command("consume", made, "--format", "json").stdout
    copied = penstock_command("produce", made, "-i", "json", given=first.encode())
    assert copied.exit_code == 0, copied.output
    again = penstock_command("consume", made, "--format", "json", "-o", "4").stdout
    shown = [json.loads(line) for line in first.splitlines()]
    copies = [json.loads(line) for line in again.splitlines()]
    assert copies == [row | {"offset": row["offset"] + 4} for row in shown]

    assert shown[0]["headers"] == [{"key": "h", "value": "1"}, {"key": "n", "value": None}]
    assert (shown[1]["key"], shown[1]["value"]) == (None, None)
    assert shown[1]["timestamp"] == "2023-11-14T22:13:20.123Z"
    assert (shown[2]["key_base64"], json.loads(shown[2]["value"])) == ("/wA=", {"a": [1, 2]})
    assert shown[3]["value"] == "é\n"
    assert shown[3]["headers"] == [{"key": "h", "value_base64": "/w=="}]


def test_the_time_of_a_line_is_read_in_either_form(penstock_command: Penstock, made: str) -> None:
    given = b"""{"value": "iso", "timestamp": "2023-11-14T22:13:20.123Z"}
{"value": "both", "timestamp": "2001-01-01T00:00:00Z", "timestamp_ms": 1700000000124}
"""
    produced = penstock_command("produce", made, "-i", "json", "-p", "0", given=given)
    assert produced.exit_code == 0, produced.output
    shown = map(json.loads, values(penstock_command("consume", made, "--format", "json")))
    assert [row["timestamp_ms"] for row in shown] == [1_700_000_000_123, 1_700_000_000_124]


def test_produce_counts_its_records_though_its_output_is_closed(
    penstock_command: Penstock, made: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(_: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("penstock.cli.producing.print_json", closed)
    left = penstock_command("produce", made, "--format", "json", given=numbers(1, 9))
    assert (left.exit_code, left.stderr) == (1, f"produced 9 records to {made}\n")
    assert len(values(penstock_command("consume", made))) == 9


def test_consume_starts_and_stops_at_the_given_positions(
    penstock_command: Penstock, made: str
) -> None:
    for hour in (1, 2, 3):
        given = numbers(hour * 10, hour * 10 + 1)
        time = f"2026-01-01T0{hour}:00:00"
        assert penstock_command("produce", made, "-p", "0", "-t", time, given=given).exit_code == 0

    def read(*options: str) -> list[str]:
        return values(penstock_command("consume", made, *options))

    assert read() == ["10", "11", "20", "21", "30", "31"]
    assert read("-o", "-2") == ["30", "31"]
    assert read("-o", "+5") == ["31"]
    assert read("-o", "4") == ["30", "31"]
    assert read("-o", "-100", "-n", "1") == ["10"]
    assert read("-o", "end") == read("-o", "1000") == read("-p", "1") == []
    assert read("-o", "@2026-01-01T02:00:00Z", "-u", "@2026-01-01T02:30:00Z") == ["20", "21"]
    assert read("-o", "@2026-01-01T03:00:00.001Z") == []
    assert read("-o", "@-1d", "--committed") == []
    assert read("-u", "1", "--committed") == ["10"]


@pytest.mark.parametrize(
    ("offset", "warning"),
    [
        ("1000", "has no offset 1000; using its end, 2"),
        ("+3", "has no offset 3; using its end, 2"),
        ("2", ""),
        ("-10", ""),
        ("@-1h", ""),
    ],
)
def test_an_offset_beyond_the_end_gives_a_warning(
    penstock_command: Penstock, made: str, offset: str, warning: str
) -> None:
    assert penstock_command("produce", made, "-p", "0", given=numbers(1, 2)).exit_code == 0
    done = penstock_command("consume", made, "-p", "0", "-o", offset)
    assert done.exit_code == 0
    expected = f"penstock: warning: {made}-0 {warning}\n" if warning else ""
    assert done.stderr == f"{expected}consumed {len(values(done))} records of {made}\n"


def test_records_with_one_key_go_to_one_partition(penstock_command: Penstock, made: str) -> None:
    for _ in range(3):
        done = penstock_command("produce", made, "-k", "k", given=numbers(1, 3))
        assert done.exit_code == 0, done.output
    shown = values(penstock_command("consume", made, "--offsets", "-k"))
    assert len(shown) == 9
    assert len({line.split(":")[0] for line in shown}) == 1


def test_impossible_requests_are_refused(penstock_command: Penstock, made: str) -> None:
    assert penstock_command("consume", f"{made}-none").exit_code == 1
    assert penstock_command("consume", made, "-p", "9").exit_code == 1
    assert penstock_command("consume", made, "-o", "soon").exit_code == 2
    assert penstock_command("consume", made, "-f", "-u", "3").exit_code == 2
    assert penstock_command("produce", f"{made}-none", given=b"v").exit_code == 1
    assert penstock_command("produce", made, "-p", "9", given=b"v").exit_code == 1
    assert penstock_command("produce", "", given=b"v").exit_code == 2
    broken = penstock_command("produce", made, "-i", "json", given=b'{"value": 1')
    assert broken.exit_code == 2
    assert "line 1: " in broken.stderr
    assert penstock_command("consume", made).stdout == ""


BAD_LINES = [
    pytest.param(b"v", ("-s", ":"), "no ':'", id="no separator"),
    pytest.param(b"{", ("-i", "json"), "Input data was truncated", id="no JSON"),
    pytest.param(b'{"value_base64": "%"}', ("-i", "json"), "base64", id="no base64"),
    pytest.param(b'{"partition": 7}', ("-i", "json"), "has no partition 7", id="no partition"),
    pytest.param(b'{"timestamp_ms": 1e30}', ("-i", "json"), "timestamp_ms", id="no time"),
]


@pytest.mark.parametrize(("bad", "options", "reason"), BAD_LINES)
def test_lines_before_a_bad_line_are_written_and_the_line_is_named(
    penstock_command: Penstock, made: str, bad: bytes, options: tuple[str, ...], reason: str
) -> None:
    good = b'{"value": "k:1"}' if "json" in options else b"k:1"
    given = b"\n".join([*[good] * 3000, bad, good, good])

    stopped = penstock_command("produce", made, *options, given=given)
    assert stopped.exit_code == 5
    line, count = stopped.stderr.splitlines()[::-1]
    assert line.startswith("penstock: line 3001: ")
    assert reason in line
    assert count == f"produced 3000 records to {made}"

    went_on = penstock_command("produce", made, *options, "--on-error", "skip", given=given)
    assert went_on.exit_code == 5
    named, count = went_on.stderr.splitlines()
    assert named == line
    assert count == f"produced 3002 records to {made}, skipped 1 line"

    assert len(values(penstock_command("consume", made))) == 6002


REFUSED_LINES = [
    pytest.param("max.message.bytes=20000", "v" * 30_000, "MESSAGE_TOO_LARGE", id="too large"),
    pytest.param("cleanup.policy=compact", None, "INVALID_RECORD", id="no key"),
    pytest.param("message.timestamp.before.max.ms=1000", "old", "INVALID_TIMESTAMP", id="too old"),
]


@pytest.mark.parametrize(("setting", "bad", "reason"), REFUSED_LINES)
def test_lines_before_a_rejected_line_are_written_and_the_line_is_named(
    penstock_command: Penstock, topic: str, setting: str, bad: str | None, reason: str
) -> None:
    create(penstock_command, topic, "-c", setting)

    def line(number: int) -> bytes:
        row: dict[str, object] = {"key": f"k{number}", "value": "v" * 20, "partition": number % 2}
        if number in {1501, 1800}:
            row |= {"value": bad} if bad else {"key": None}
            row |= {"timestamp_ms": 1} if bad == "old" else {}
        return json.dumps(row).encode() + b"\n"

    def produced(*words: str, given: bytes) -> tuple[int, list[str]]:
        result = penstock_command("produce", topic, "-i", "json", *words, given=given)
        return result.exit_code, result.stderr.splitlines()

    given = b"".join(map(line, range(1, 2001)))
    code, (count, named) = produced(given=given)
    assert code == 5
    assert named.startswith("penstock: line 1501: ")
    assert reason in named
    shown = values(penstock_command("consume", topic, "--offsets", "-k"))
    assert count == f"produced {len(shown)} records to {topic}"
    # Records behind the rejected one are written only if they were already sent to the other
    # partition.
    keys = [int(row.split("\t")[1].removeprefix("k")) for row in shown]
    assert set(range(1, 1501)) <= set(keys)
    assert all(number < 1501 or number % 2 == 0 for number in keys)

    code, (*both, count) = produced("--on-error", "skip", given=given)
    assert code == 5
    numbers_named = [re.findall(r"line (\d+): .*", each) for each in both]
    assert numbers_named == [["1501"], ["1800"]]
    assert count == f"produced 1998 records to {topic}, skipped 2 lines"
    assert len(values(penstock_command("consume", topic))) == len(shown) + 1998

    for how in ("stop", "skip"):
        assert produced("--on-error", how, given=line(1501))[0] == 1


def test_if_every_line_is_bad_nothing_is_written(penstock_command: Penstock, made: str) -> None:
    for how in ("stop", "skip"):
        done = penstock_command("produce", made, "-s", ":", "--on-error", how, given=b"v\nw\n")
        assert done.exit_code == 2
    assert penstock_command("consume", made).stdout == ""


def test_a_separator_may_be_written_as_an_escape(penstock_command: Penstock, made: str) -> None:
    produced = penstock_command("produce", made, "-s", r"\t", given=b"k\tv\n")
    assert produced.exit_code == 0, produced.output
    assert values(penstock_command("consume", made, "-k", "-s", r"\x3d")) == ["k=v"]


@pytest.fixture
def started(bootstrap: str) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Runs `penstock` in separate processes, for tests that need pipes and signals."""
    processes: list[subprocess.Popen[str]] = []
    environ = os.environ | {"PENSTOCK_BOOTSTRAP": bootstrap, "PYTHONPATH": str(SOURCE)}

    def start(*words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environ,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        with process:
            process.kill()


def test_lines_are_written_as_they_arrive_and_can_be_followed(
    started: Callable[..., subprocess.Popen[str]], made: str
) -> None:
    reader, writer = started("consume", made, "-f"), started("produce", made)
    assert writer.stdin is not None
    assert reader.stdout is not None
    for line in ("one\n", "two\n"):
        writer.stdin.write(line)
        writer.stdin.flush()
        assert reader.stdout.readline() == line
    assert writer.communicate() == ("", f"produced 2 records to {made}\n")
    assert writer.returncode == 0
    reader.send_signal(signal.SIGINT)
    assert reader.communicate() == ("", f"consumed 2 records of {made}\n")
    assert reader.returncode == 130


def test_ctrl_c_ends_a_producer_that_waits_for_lines(
    started: Callable[..., subprocess.Popen[str]], made: str
) -> None:
    writer = started("produce", made, "--format", "json")
    assert writer.stdin is not None
    assert writer.stdout is not None
    writer.stdin.write("one\nhalf")
    writer.stdin.flush()
    assert re.search(r'"offset":0', writer.stdout.readline())
    writer.send_signal(signal.SIGINT)
    assert writer.wait(20) == 130
    assert writer.stderr is not None
    assert writer.stderr.read() == f"produced 1 record to {made}\n"
