"""Everything at once: a broker, a generator of access logs, and their analytics on Spark.

`make run` runs this. A minute of log passes in a second; its figures appear when it is over. On a
terminal it goes on until Ctrl-C. Elsewhere, or with RUN_SECONDS set, it ends by itself: after so
many seconds, or as soon as a few minutes were analysed. All its data lies in a temporary folder.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from access_lines import START, lines
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

LINES_PER_MINUTE = 200
MINUTES_PER_SECOND = 1
ENOUGH_MINUTES = 5
PATIENCE_S = 300
TOPICS = ("access-log", "access-log-minutes", "access-log-pages", "access-log-dead")
HERE = Path(__file__).parent


class Stop(Exception):
    """Ctrl-C or SIGTERM."""


def main() -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    seconds = os.environ.get("RUN_SECONDS")
    endless = seconds is None and sys.stdin.isatty()
    with ExitStack() as left:
        folder = Path(left.enter_context(tempfile.TemporaryDirectory(prefix="penstock-")))
        try:
            bootstrap, broker = start_broker(folder, left)
            create_topics(bootstrap)
            ending = threading.Event()
            generator = threading.Thread(target=generate, args=(bootstrap, ending), daemon=True)
            generator.start()
            # In reverse: it is told to end, and then waited for, all before the broker goes.
            left.callback(generator.join, 15)
            left.callback(ending.set)
            pipeline = start_pipeline(folder, bootstrap, left)
            limit = None if endless else float(seconds or PATIENCE_S)
            enough = None if endless or seconds else ENOUGH_MINUTES
            shown = show(bootstrap, pipeline, limit, enough)
            if pipeline.poll() is not None:
                print((folder / "pipeline.log").read_text(errors="replace")[-2000:])
                return 1
            print(f"{shown} minutes of log were analysed; the broker runs: {broker.poll() is None}")
            return 0 if shown else 1
        except Stop:
            print("\nstopping ...", flush=True)
            return 0


def stop(number: int, _frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    raise Stop(number)


def start_broker(folder: Path, left: ExitStack) -> tuple[str, subprocess.Popen[str]]:
    port = os.environ.get("PORT", "9092")
    command = [sys.executable, "-m", "penstock", "serve", "--port", port, "--log-level", "warning"]
    command += ["--dir", str(folder / "broker")]
    began = time.perf_counter()
    # A group of its own: Ctrl-C reaches this process alone, which then ends the others in order.
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
    left.callback(end, broker)
    assert broker.stdout is not None
    ready = broker.stdout.readline().split()
    if ready[:1] != ["ready"]:
        raise SystemExit(broker.wait())  # it has said why
    print(f"Penstock is ready at {ready[1]} after {time.perf_counter() - began:.2f} s", flush=True)
    return ready[1], broker


def create_topics(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for made in admin.create_topics([NewTopic(each, num_partitions=2) for each in TOPICS]).values():
        made.result(10)
    print(f"topics: {', '.join(TOPICS)}", flush=True)


def generate(bootstrap: str, ending: threading.Event) -> None:
    """A second's lines at a time, until the end."""
    producer = Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"})
    written = lines(7, LINES_PER_MINUTE, broken_every=97)
    while not ending.wait(1):
        for _ in range(LINES_PER_MINUTE * MINUTES_PER_SECOND):
            producer.produce("access-log", next(written)[1])
        producer.flush(10)


def start_pipeline(folder: Path, bootstrap: str, left: ExitStack) -> subprocess.Popen[bytes]:
    project = shutil.copytree(
        HERE / "access_log", folder / "project", ignore=shutil.ignore_patterns("pipeline-storage")
    )
    command = [sys.executable, "-m", "penstock", "pipeline", "run", str(project), "--follow"]
    command += ["--interval", "1", "--bootstrap", bootstrap, "--master", "local[2]"]
    # A JVM that is quick to start rather than quick in the long run.
    command += ["--conf", "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"]
    print("starting Spark; the first figures take some seconds ...", flush=True)
    log = left.enter_context((folder / "pipeline.log").open("wb"))
    pipeline = subprocess.Popen(command, stdout=log, stderr=log, process_group=0)
    left.callback(end, pipeline)
    return pipeline


def show(
    bootstrap: str, pipeline: subprocess.Popen[bytes], limit_s: float | None, enough: int | None
) -> int:
    """Print the minutes in their order, as the pipeline writes them."""
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "demo", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["access-log-minutes"])
    deadline = None if limit_s is None else time.monotonic() + limit_s
    shown, minutes = 0, Minutes(START)
    try:
        while pipeline.poll() is None and (deadline is None or time.monotonic() < deadline):
            message = consumer.poll(0.5)
            value = None if message is None or message.error() else message.value()
            for row in minutes.add(json.loads(value)) if value is not None else ():
                show_minute(row, shown)
                shown += 1
            if enough is not None and shown >= enough:
                break
    finally:
        consumer.close()
    return shown


class Minutes:
    """Rows in the order of their minutes: each waits for the one before it.

    They come from several tasks of Spark and several partitions, so in any order.
    """

    def __init__(self, first: datetime) -> None:
        self._next, self._waiting = first, dict[str, dict[str, Any]]()

    def add(self, row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The rows whose turn it is now."""
        self._waiting[row["minute"]] = row
        while due := self._waiting.pop(f"{self._next:%Y-%m-%d %H:%M}", None):
            self._next += timedelta(minutes=1)
            yield due


def show_minute(row: dict[str, Any], before: int) -> None:
    if before % 20 == 0:
        print("\nminute            requests  errors  p95 seconds      bytes")
    print(
        f"{row['minute']}  {row['requests']:>8}  {row['errors']:>6}  "
        f"{row['p95_seconds']:>11.3f}  {row['bytes']:>9}",
        flush=True,
    )


def end(process: subprocess.Popen[str] | subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


if __name__ == "__main__":
    sys.exit(main())
