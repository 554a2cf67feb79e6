"""Micro-batches through the exactly-once sink without Spark: a driver that notes which epochs it
committed, and tasks in separate processes. It dies, or kills others, at a chosen step.

`python -m support.spark.epoch_driver BOOTSTRAP FOLDER STEP VICTIM`. Like Spark it resumes after its
last note, and restarts a task that died; after any failure it ends, and its caller starts it again.
"""

import os
import pickle
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from peers.process import wait_until
from penstock.errors import KafkaError
from penstock.spark.client.cluster import BlockingClient
from penstock.spark.sink import marker, transaction
from penstock.spark.sink.epoch import (
    EpochCommit,
    SparkTransaction,
    TaskReport,
    check_counts,
    to_commit,
)
from penstock.spark.sink.producer import SinkProducer
from penstock.spark.sink.settings import SinkSettings, read_sink_settings
from penstock.spark.sink.task import write_in_transaction
from penstock.spark.sink.transaction import commit, open_transaction

EPOCHS, TASKS, PARTITIONS, ROWS = 3, 2, 4, 80
ATTEMPTS = 4
FAULTY_EPOCH = 1
DRIVER_STEPS = (
    "open.begin",
    "open.initialised",  # earlier runs are fenced, the marker is not read yet
    "open.done",
    "commit.begin",
    "commit.counted",
    "commit.marked",
    "commit.ended",  # not noted yet
)
TASK_STEPS = (
    "task.begin",
    "task.part",  # batches are in flight, none is acknowledged
    "task.heard",  # some are acknowledged
    "task.sent",  # all are acknowledged, none is reported
)
STEPS = (*DRIVER_STEPS, *TASK_STEPS)
SERVERS = ("broker", "coordinator")
WAIT_S = 300
"""For a killed server to come back: more than its start may take on a busy machine."""


class Steps:
    """The fault happens once, when its step is first reached in its epoch."""

    def __init__(self, folder: Path, step: str, victim: str) -> None:
        self.folder, self.step, self.victim = folder, step, victim
        self.epoch = 0

    def at(self, step: str) -> None:
        if (step, self.epoch) != (self.step, FAULTY_EPOCH):
            return
        try:
            (self.folder / "happened").touch(exist_ok=False)
        except FileExistsError:
            return
        in_task = step in TASK_STEPS
        match self.victim:
            case "driver":
                # The task continues without its driver, like an executor that has not noticed the
                # driver's death.
                os.kill(os.getppid() if in_task else os.getpid(), signal.SIGKILL)
            case "executor":
                os.kill(os.getpid(), signal.SIGKILL)
            case server:
                asked = self.folder / f"kill-{server}"
                asked.touch()
                wait_until(lambda: not asked.exists(), WAIT_S, f"the {server} to be killed")


def ids(epoch: int, task: int) -> list[int]:
    whole = range(epoch * ROWS, (epoch + 1) * ROWS)
    return [each for each in whole if each % PARTITIONS % TASKS == task]


def rows(epoch: int, task: int) -> list[pa.RecordBatch]:
    """Small pieces, so that some batches are sent while others are built."""
    found = ids(epoch, task)
    return [_batch(found[at : at + 10]) for at in range(0, len(found), 10)]


def _batch(piece: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array([str(each).encode() for each in piece], pa.binary()),
            "partition": pa.array([each % PARTITIONS for each in piece], pa.int32()),
        }
    )


def between(steps: Steps, name: str, step: str, call: Callable[..., Any], *, before: bool) -> None:
    """Wraps a function of `transaction` so that calling it reaches the step."""

    def wrapped(*args: Any) -> Any:
        if before:
            steps.at(step)
        answer = call(*args)
        if not before:
            steps.at(step)
        return answer

    vars(transaction)[name] = wrapped


def run_task(of: SinkSettings, opened: SparkTransaction, steps: Steps, task: int) -> TaskReport:
    """Runs the task in a separate process, and again if that process dies."""
    for _ in range(ATTEMPTS):
        readable, writable = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(readable)
            try:
                steps.at("task.begin")
                report = write_in_transaction(
                    iter(rows(steps.epoch, task)),
                    of,
                    opened,
                    query="copy",
                    batch_id=steps.epoch,
                    task=task,
                )
                steps.at("task.sent")
                with os.fdopen(writable, "wb") as pipe:
                    pickle.dump(report, pipe)
            except KafkaError as error:
                print(f"task {task}: {error}", flush=True)
                os._exit(1)
            os._exit(0)
        os.close(writable)
        with os.fdopen(readable, "rb") as pipe:
            reported = pipe.read()
        os.waitpid(child, 0)
        if reported:
            found: TaskReport = pickle.loads(reported)
            return found
    raise SystemExit(f"task {task} failed {ATTEMPTS} times")


def main(bootstrap: str, folder: Path, step: str, victim: str) -> None:
    pa.array([0])  # makes pyarrow import pandas now, and not again in each task
    steps = Steps(folder, step, victim)
    between(steps, "committed_markers", "open.initialised", marker.committed_markers, before=True)
    between(steps, "check_counts", "commit.counted", check_counts, before=False)
    between(steps, "write_markers", "commit.marked", marker.write_markers, before=False)
    received = SinkProducer._receive_oldest

    def receive_oldest(producer: SinkProducer) -> None:
        steps.at("task.part")
        received(producer)
        steps.at("task.heard")

    SinkProducer._receive_oldest = receive_oldest  # type: ignore[method-assign, assignment]
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "topic": "out",
        "transactional": "true",
        "transactionalId": "copy",
        "kafka.batch.size": "200",
        "kafka.transaction.timeout.ms": "30000",
    }
    of, _ = read_sink_settings(options, {"value": "binary", "partition": "int"}, streaming=True)
    for epoch in range(EPOCHS):
        note = folder / f"noted-{epoch}"
        if note.exists():
            continue
        steps.epoch = epoch
        run_epoch(of, steps)
        note.touch()


def run_epoch(of: SinkSettings, steps: Steps) -> None:
    assert of.transactional_id is not None
    steps.at("open.begin")
    with BlockingClient(of.client) as client:
        opened = open_transaction(client, of.transactional_id, of.transaction_timeout_ms)
    steps.at("open.done")
    reports: Sequence[TaskReport] = [run_task(of, opened, steps, task) for task in range(TASKS)]
    steps.at("commit.begin")
    decided = to_commit(reports, steps.epoch, of.topic)
    if isinstance(decided, EpochCommit):
        with BlockingClient(of.client) as client:
            commit(client, decided)
    steps.at("commit.ended")


if __name__ == "__main__":
    try:
        main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:5])
    except KafkaError as failed:
        raise SystemExit(f"{type(failed).__name__}: {failed}") from failed
