"""Faults at chosen points of the exactly-once sink, for queries that tests run.

`faulty` is a data source like `penstock` whose writer counts how often each point is reached, over
all processes, by files in one folder. A plan in that folder says at which count something breaks.
"""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSource, WriterCommitMessage
from pyspark.sql.types import StructType

from peers.process import wait_until
from penstock.spark.sink import marker, transaction, writer
from penstock.spark.sink.producer import SinkProducer
from penstock.spark.sink.writer import ExactlyOnceWriter, stream_writer

POINTS = (
    "open.begin",
    "open.done",
    "task.begin",
    "task.part",  # batches are in flight, none is acknowledged
    "task.heard",  # some batches are acknowledged
    "task.sent",  # all rows are written, none is reported
    "commit.begin",
    "commit.marked",
    "commit.ended",
)
ACTIONS = ("fail", "kill", "jvm", "broker")
WAIT_S = 60


class Fault(NamedTuple):
    """What happens at the n-th time (from 0) that the point is reached."""

    point: str
    nth: int
    action: str


class Folder:
    """The folder through which the processes of a query and the test communicate."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write_plan(self, faults: list[Fault]) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        lines = [f"{point} {nth} {action}\n" for point, nth, action in faults]
        (self.path / "plan").write_text("".join(lines))

    def plan(self) -> list[Fault]:
        lines = (self.path / "plan").read_text().splitlines()
        return [Fault(point, int(nth), action) for point, nth, action in map(str.split, lines)]

    def reached(self, point: str) -> int:
        """Counts this arrival; returns how often the point was reached before."""
        nth = 0
        while True:
            try:
                (self.path / f"{point}.{nth}").touch(exist_ok=False)
            except FileExistsError:
                nth += 1
            else:
                return nth

    def happened(self) -> set[Fault]:
        return {each for each in self.plan() if (self.path / f"{each.point}.{each.nth}").exists()}

    def at(self, point: str) -> None:
        nth = self.reached(point)
        for fault in self.plan():
            if (fault.point, fault.nth) == (point, nth):
                self.act(fault)

    def act(self, fault: Fault) -> None:
        match fault.action:
            case "fail":
                raise RuntimeError(f"a fault at {fault.point}")
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "jvm":
                os.kill(jvm(), signal.SIGKILL)
                signal.pause()  # this process ends when the JVM does
            case "broker":
                asked = self.path / "kill-broker"
                asked.touch()
                wait_until(lambda: not asked.exists(), WAIT_S, "the broker to be killed")
            case other:
                raise AssertionError(f"{other} is no fault")


def jvm() -> int:
    """The JVM whose daemon forked this process: the executor's, or the driver's in local mode."""
    daemon = parent(os.getpid())
    return parent(daemon)


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def after(call: Callable[..., Any], then: Callable[[], None]) -> Callable[..., Any]:
    def wrapped(*args: Any, **named: Any) -> Any:
        answer = call(*args, **named)
        then()
        return answer

    return wrapped


class FaultyWriter(ExactlyOnceWriter):
    """The writer with its fault points. Each process patches itself, and does nothing else."""

    faults: str = ""

    def __getstate__(self) -> dict[str, Any]:
        folder, opens = Folder(Path(self.faults)), self._transaction is None
        opens = opens and writer._is_sent_to_tasks()
        if opens:
            folder.at("open.begin")
        state = super().__getstate__()
        if opens:
            folder.at("open.done")
        return state

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        folder = Folder(Path(self.faults))
        folder.at("task.begin")
        received = SinkProducer._receive_oldest

        def receive_oldest(producer: SinkProducer) -> None:
            folder.at("task.part")
            received(producer)
            folder.at("task.heard")

        SinkProducer._receive_oldest = receive_oldest  # type: ignore[method-assign, assignment]
        try:
            message = super().write(iterator)
        finally:
            SinkProducer._receive_oldest = received  # type: ignore[method-assign]
        folder.at("task.sent")
        return message

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        folder = Folder(Path(self.faults))
        folder.at("commit.begin")
        mark = marker.write_markers
        vars(transaction)["write_markers"] = after(mark, lambda: folder.at("commit.marked"))
        try:
            super().commit(messages, batchId)
        finally:
            vars(transaction)["write_markers"] = mark
        folder.at("commit.ended")


class Faulty(DataSource):
    """`penstock` as a sink, with faults; option `faults` names the folder."""

    @classmethod
    def name(cls) -> str:
        return "faulty"

    def streamWriter(self, schema: StructType, overwrite: bool) -> ExactlyOnceWriter:  # noqa: N802, ARG002
        options = dict(self.options)
        faults = options.pop("faults")
        made = stream_writer(options, schema)
        assert isinstance(made, ExactlyOnceWriter)
        faulty = FaultyWriter(made._settings, made._id)
        faulty.faults = faults
        return faulty
