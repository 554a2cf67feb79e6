"""A file of very many lines fills segment after segment; `make soak` imports ten million."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from penstock.cli.main import main
from penstock.testing.broker import EmbeddedBroker


@pytest.mark.parametrize(
    ("count", "segment_bytes"),
    [(200_000, 1 << 20), pytest.param(10_000_000, 100 << 20, marks=pytest.mark.soak)],
)
@pytest.mark.timeout(3600)
def test_lines_fill_segments(tmp_path: Path, count: int, segment_bytes: int) -> None:
    file = tmp_path / "nm.txt"
    with file.open("w") as text:
        text.writelines(f"{number}\n" for number in range(count))
    with EmbeddedBroker(directory=tmp_path) as broker:
        broker.create_topic("lines", 1, configs={"segment.bytes": str(segment_bytes)})
        words = ["kafka-console-producer.sh", "--topic", "lines"]
        words += ["--bootstrap-server", broker.bootstrap]
        began = time.monotonic()
        with file.open("rb") as lines:
            command = [sys.executable, "-m", "penstock.kafka_tools", *words]
            subprocess.run(command, stdin=lines, check=True)
        seconds = time.monotonic() - began
        print(f"{count:,} lines in {seconds:.1f} s: {count / seconds:,.0f} lines/s")
        log = broker.running.services.replicas.partitions.get("lines", 0).log
        assert log.end_offset == count
    sizes = [each.stat().st_size for each in sorted((tmp_path / "logs/lines-0").glob("*.log"))]
    assert len(sizes) > 1
    assert all(0.9 * segment_bytes < each <= segment_bytes for each in sizes[:-1])
    report = CliRunner().invoke(main, ["log", "verify", str(tmp_path / "logs"), "--deep-iteration"])
    assert f" {count} records, " in report.stdout
    assert "no damage" in report.stdout
