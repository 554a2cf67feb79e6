"""The logs that `penstock logs`, `doctor` and `bundle` read."""

from contextlib import closing
from pathlib import Path

from click.testing import CliRunner

from penstock.cli.doctor import folder_snapshot
from penstock.cli.log_files import FileTail, last_lines, log_files
from penstock.cli.main import main

WORKERS = {
    "penstock.log": "[2026-01-01 00:00:01,000] INFO starting (a)\n",
    "penstock-worker-0.log": (
        "[2026-01-01 00:00:02,000] ERROR worker 0: no warning (b)\n"
        "Traceback:\n"
        "[2026-01-01 00:00:05,000] WARNING worker 0: late (b)\n"
    ),
    "penstock-worker-1.log": "[2026-01-01 00:00:03,000] INFO worker 1: up (c)\n",
    "penstock-metadata-store.log": "[2026-01-01 00:00:04,000] INFO metadata store: up (d)\n",
    "state-change.log": "[2026-01-01 00:00:09,000] INFO not ours (e)\n",
}


def written(folder: Path) -> Path:
    for name, text in WORKERS.items():
        (folder / name).write_text(text)
    return folder


def shown(folder: Path, *words: str) -> list[str]:
    done = CliRunner().invoke(main, ["logs", "--dir", str(folder), *words])
    assert done.exit_code == 0, done.output
    return done.stdout.splitlines()


def test_lines_added_before_and_after_a_rotation_are_read(tmp_path: Path) -> None:
    path = tmp_path / "penstock.log"
    path.write_text("before\n")
    with closing(FileTail(path)) as tail:
        with path.open("a") as log:
            log.write("last\nha")
            log.flush()
            assert list(tail.added()) == [b"last\n"]
            log.write("lf\n")
        path.rename(tmp_path / "penstock.log.1")
        path.write_text("in the new file\n")
        assert list(tail.added()) == [b"half\n", b"in the new file\n"]
        assert list(tail.added()) == []


def test_the_logs_of_workers_are_merged_by_time(tmp_path: Path) -> None:
    lines = shown(written(tmp_path))
    assert [line.partition("] ")[2][:20] for line in lines] == [
        "INFO starting (a)",
        "ERROR worker 0: no w",
        "",
        "INFO worker 1: up (c",
        "INFO metadata store:",
        "WARNING worker 0: la",
    ]
    assert shown(tmp_path, "-n", "2") == lines[-2:]


def test_a_traceback_has_the_level_of_its_line(tmp_path: Path) -> None:
    assert shown(written(tmp_path), "--level", "warn") == [
        "[2026-01-01 00:00:05,000] WARNING worker 0: late (b)"
    ]
    assert shown(tmp_path, "--level", "error")[1] == "Traceback:"
    json = '{"ts": "2026-01-01T00:00:00.000+00:00", "level": "ERROR", "msg": "x"}\n'
    (tmp_path / "penstock.log").write_text(json)
    assert last_lines(log_files(tmp_path)[:1], 9, "error")[0].text == json.encode()


def test_an_unknown_level_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["logs", "--dir", str(written(tmp_path)), "--level", "loud"])
    assert done.exit_code == 2
    assert "'loud' is not one of 'debug', 'info', 'warn'" in done.stderr


def test_the_doctor_reads_the_errors_of_every_worker(tmp_path: Path) -> None:
    [error] = folder_snapshot(written(tmp_path)).errors_logged
    assert "worker 0: no warning" in error
