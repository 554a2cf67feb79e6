"""`penstock pipeline` and `penstock sql`, as far as they work without Spark."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.cli.pipeline import Stopped, remembered_end
from penstock.cli.pipeline_view import Display
from penstock.cli.run_file import RunState, read_run, write_run
from penstock.cli.sql import Printer, text
from penstock.config.extra import install
from penstock.errors import ConfigError
from penstock.local.process import StartedProcess, start_time
from penstock.spark.pipeline.failure import PipelineFailed
from penstock.spark.pipeline.progress import BatchProgress

STEP = BatchProgress("q", 1, "2026-01-01T00:00:00.000Z", 10, 5.0, 20, 3, None, {"known": 2})


def penstock(*words: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.stdout, result.stderr


def test_init_creates_a_project_and_status_reports_that_it_never_ran(tmp_path: Path) -> None:
    code, out, _ = penstock("pipeline", "init", str(tmp_path / "shop"))
    assert code == 0
    assert str(tmp_path / "shop" / "spark-pipeline.yml") in out.splitlines()
    code, _, said = penstock("pipeline", "status", str(tmp_path / "shop"))
    assert (code, said) == (2, f"penstock: {tmp_path / 'shop'}: has never been run\n")


def test_a_killed_run_is_reported_as_not_running(tmp_path: Path) -> None:
    write_run(
        tmp_path, RunState(StartedProcess(os.getpid(), "another"), "local[1]", 0, {"q": STEP})
    )
    code, out, _ = penstock("pipeline", "status", str(tmp_path))
    assert code == 0
    assert "does not run; started 1970-01-01T00:00:00.000Z on local[1]" in out
    assert "known: 2" in out
    code, _, said = penstock("pipeline", "stop", str(tmp_path))
    assert (code, said) == (2, f"penstock: {tmp_path}: does not run\n")


def test_the_run_file_records_how_a_run_ended(tmp_path: Path) -> None:
    state = RunState(StartedProcess(os.getpid(), "x"), "local[1]", 0, {"q": STEP})
    with pytest.raises(PipelineFailed), remembered_end(tmp_path, lambda: state):
        raise PipelineFailed("the column price is unknown")
    assert (
        "last error: the column price is unknown"
        in penstock("pipeline", "status", str(tmp_path))[1]
    )
    with pytest.raises(Stopped), remembered_end(tmp_path, lambda: state):
        raise Stopped
    found = read_run(tmp_path)
    assert found is not None
    assert (found.error, found.progress) == (None, {"q": STEP})
    assert found.ended_ms


def test_a_project_runs_once_at_a_time(tmp_path: Path) -> None:
    assert penstock("pipeline", "init", str(tmp_path / "p"))[0] == 0
    began = start_time(os.getpid())
    assert began is not None
    write_run(tmp_path / "p", RunState(StartedProcess(os.getpid(), began), "local[1]", 0))
    code, _, said = penstock("pipeline", "run", str(tmp_path / "p"))
    assert code == 2
    assert f"process {os.getpid()} already runs this project" in said


@pytest.mark.parametrize("command", [["pipeline", "run"], ["pipeline", "validate"]])
def test_without_pyspark_the_error_says_what_to_install(tmp_path: Path, command: list[str]) -> None:
    assert penstock("pipeline", "init", str(tmp_path / "p"))[0] == 0
    script = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from penstock.cli.main import main; main(sys.argv[1:])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *command, str(tmp_path / "p")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr == (
        f"penstock: pyspark is not installed, which Spark commands need: {install('spark')}\n"
    )


def test_progress_is_json_lines_if_not_on_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = Display()
    display.progress(STEP)
    display.message("hello")
    out, err = capsys.readouterr()
    assert msgspec.json.decode(out)["lag"] == 3
    assert err == "hello\n"


def test_progress_on_a_terminal_is_a_redrawn_table(
    capsys: pytest.CaptureFixture[str],
) -> None:
    display = Display(as_json=False)
    display.progress(STEP)
    display.progress(msgspec.structs.replace(STEP, batch=2))
    out = capsys.readouterr().out
    assert out.count("QUERY") == 2
    assert "\x1b[2A\x1b[J" in out


def test_results_are_printed_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[Sequence[object]] = [(1, None), (2, [1, {"x": "y"}])]
    for form in ("csv", "json", "table"):
        Printer(form).emit(["a", "b"], rows)
    out = capsys.readouterr().out.replace("\r\n", "\n")
    assert out.startswith('a,b\n1,\n2,"[1,{""x"":""y""}]"\n{"a":1,"b":null}\n')
    assert out.endswith('a  b\n1\n2  [1,{"x":"y"}]\n')
    assert text(b"\xff") == "\ufffd"


def test_columns_that_share_a_name_are_printed_by_position(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Printer("csv").emit(["a", "a"], [(1, 2)])
    assert capsys.readouterr().out == "a,a\r\n1,2\r\n"
    with pytest.raises(ConfigError, match="several columns are called a; name them"):
        Printer("json").emit(["a", "a"], [(1, 2)])


def test_usage_errors_of_sql_are_reported_before_spark_starts() -> None:
    for words, said in (
        (["--format", "parquet"], "need each other"),
        (["--schema", "a int"], "--schema needs --values"),
        (["--conf", "a"], "not NAME=VALUE"),
    ):
        code, _, err = penstock("sql", "select 1", *words)
        assert code == 2
        assert said in err
