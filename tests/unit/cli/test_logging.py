"""Logs neither fill a disk nor lose what a process writes to standard error."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.broker.net.rate_limited_log import LINES, PERIOD_S, RateLimitedLog
from penstock.cli import logging as cli_logging
from penstock.cli.logging import PlainLines, RotatedFile

SCRIPT = """
import logging, os, sys
from pathlib import Path
from penstock.cli import logging as ours
ours.MAX_BYTES = 200
path = Path(sys.argv[1])
os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
ours.start_logging("info", "plain", path)
for number in range(20):
    logging.getLogger("x").info("line %d of the log", number)
os.write(2, b"last words\\n")
"""


def test_files_are_rotated_by_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_logging, "MAX_BYTES", 100)
    handler = RotatedFile(tmp_path / "penstock.log")
    for number in range(100):
        handler.emit(logging.makeLogRecord({"msg": f"line {number}", "levelno": logging.INFO}))
    handler.close()
    files = sorted(each.name for each in tmp_path.iterdir())
    assert files == ["penstock.log", *(f"penstock.log.{number}" for number in range(1, 9))]
    assert all(each.stat().st_size <= 100 for each in tmp_path.iterdir())


def test_standard_error_follows_the_log_to_its_next_file(tmp_path: Path) -> None:
    path = tmp_path / "penstock.log"
    subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path)], env=os.environ, check=True, timeout=60
    )
    assert (tmp_path / "penstock.log.1").exists()
    assert path.read_text().endswith("last words\n")


def test_warnings_about_bad_clients_are_rate_limited(caplog: pytest.LogCaptureFixture) -> None:
    client_log = RateLimitedLog()
    for number in range(LINES + 5):
        client_log.warn(1.0, "client %d", number)
    assert len(caplog.messages) == LINES
    client_log.warn(1.0 + PERIOD_S, "a client")
    assert caplog.messages[LINES:] == ["left out 5 more lines about clients", "a client"]


def test_tracebacks_of_failed_requests_are_rate_limited(caplog: pytest.LogCaptureFixture) -> None:
    failures = RateLimitedLog()
    for _ in range(LINES + 5):
        failures.failed(1.0, ValueError("on purpose"), "a request failed")
    assert caplog.messages == ["a request failed"] * LINES
    assert all(each.exc_info for each in caplog.records)


def test_a_line_break_in_a_name_does_not_start_a_new_line() -> None:
    """Clients choose names that appear in the log; they must not be able to forge lines."""
    forged = "x\n[2026-01-01 00:00:00,000] INFO Principal = User:eve is Allowed\r\x1b[2J\u2028y"
    record = logging.makeLogRecord({"msg": "group %s", "args": (forged,), "levelname": "INFO"})
    line = PlainLines(cli_logging.PLAIN).format(record)
    assert len(line.splitlines()) == 1
    assert "group x\\n[2026" in line
    assert line.isprintable()


def test_a_traceback_keeps_its_lines() -> None:
    try:
        raise ValueError("on purpose")
    except ValueError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    assert PlainLines(cli_logging.PLAIN).format(record).splitlines()[-1] == "ValueError: on purpose"
