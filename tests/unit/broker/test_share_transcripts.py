"""Transcripts of share-partitions. `PENSTOCK_REWRITE=1` rewrites the events: review them then.

Commands: `set` limits; `log` batches (`4-9`, `4-9!` is aborted, `0:ab` has keys); `a takes 4`, also
`strictly`; `a accepts|releases|rejects|renews|skips 0-3`; `write` and `write fails`; `pass`
milliseconds; `a is gone`; `log begins` at an offset; `letters` that are due; the `letter` of an
offset is written; `another leads`.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.broker.share.share_partition import (
    Acknowledgement,
    Acquisition,
    FetchedBatch,
    ShareLimits,
    SharePartition,
)
from penstock.coordinator.share.state import RecordState, StateBatch, merged
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.enums import AcknowledgeType

TRANSCRIPTS = sorted((Path(__file__).parent / "share_partition").glob("*.txt"))
TYPES = {
    "accepts": AcknowledgeType.ACCEPT,
    "releases": AcknowledgeType.RELEASE,
    "rejects": AcknowledgeType.REJECT,
    "renews": AcknowledgeType.RENEW,
    "skips": AcknowledgeType.GAP,
}


class LostError(KafkaError):
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


class Stage:
    """A share-partition, its log, and what is stored of its state."""

    def __init__(self) -> None:
        self.limits, self.now_ms = ShareLimits(delivery_count=5, lock_ms=1000, locks=100), 0
        self.log: list[FetchedBatch] = []
        self.stored: tuple[int, tuple[StateBatch, ...]] = (0, ())
        self.partition = SharePartition(0)

    def play(self, command: str) -> Iterator[str]:
        match command.split():
            case ["set", *settings]:
                given: dict[str, Any] = {
                    name: int(text) for name, text in (each.split("=") for each in settings)
                }
                self.limits = self.limits._replace(**given)
            case ["log", "begins", offset]:
                self.partition.log_starts_at(int(offset))
            case ["log", *batches]:
                self.log += [batch(each) for each in batches]
            case [member, "takes", most, *strictly]:
                yield from self.takes(Acquisition(member, int(most), int(most), bool(strictly)))
            case [member, kind, *ranges] if kind in TYPES:
                said = [Acknowledgement(*span(each), TYPES[kind]) for each in ranges]
                try:
                    self.partition.acknowledge(member, said, self.limits, self.now_ms)
                except KafkaError as error:
                    yield f"refused: {error.code.name}"
            case ["write", *fails]:
                yield from self.writes(fails=bool(fails))
            case ["pass", ms]:
                self.now_ms += int(ms)
                if late := self.partition.expire(self.limits, self.now_ms):
                    yield f"late: {late}"
            case [member, "is", "gone"]:
                self.partition.release(member)
            case ["letters"]:
                for each in self.partition.take_letters(self.limits):
                    why = "rejected" if each.is_rejected else "failed"
                    yield f"letter: {each.offset} {why}, delivered {each.deliveries} times"
            case ["letter", offset]:
                self.partition.letter_written(int(offset))
            case ["another", "leads"]:
                self.partition = SharePartition(*self.stored)
                self.partition.back_off(self.limits, self.now_ms)
            case _:
                raise ValueError(command)

    def takes(self, wanted: Acquisition) -> Iterator[str]:
        at = self.partition.fetch_offset(self.limits, self.now_ms)
        found = [] if at is None else [each for each in self.log if each.last >= at]
        taken = self.partition.acquire(wanted, found, self.limits, self.now_ms)
        yield "gets: " + (", ".join(f"{spelled(a, b)} ({n})" for a, b, n in taken) or "nothing")

    def writes(self, *, fails: bool) -> Iterator[str]:
        write = self.partition.begin_write()
        if write is None:
            yield "nothing to write"
            return
        if not fails:
            self.stored = (
                write.start_offset,
                merged(self.stored[1], write.batches, write.start_offset),
            )
        self.partition.end_write(LostError("no answer") if fails else None)
        written = "; ".join(described(*each) for each in write.batches)
        yield f"written: start {write.start_offset}" + (f"; {written}" if written else "")

    def state(self) -> str:
        runs = [
            described(run.first, run.last, run.state, run.count)
            + (f" {run.owner}" if run.owner else "")
            + (f" -> {run.next[0].name.lower()}" if run.next else "")
            + (f" in {run.visible_ms - self.now_ms}" if self.is_invisible(run.first) else "")
            for run in self.partition.runs
        ]
        return f"state: start {self.partition.start_offset}" + "".join(f"; {each}" for each in runs)

    def is_invisible(self, first: int) -> bool:
        run = next(each for each in self.partition.runs if each.first == first)
        return run.is_available and run.visible_ms > self.now_ms


def span(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    return int(first), int(last or first)


def spelled(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first}-{last}"


def described(first: int, last: int, state: int, deliveries: int) -> str:
    return f"{spelled(first, last)} {RecordState(state).name.lower()} {deliveries}"


def batch(text: str) -> FetchedBatch:
    """`0:aba` is a batch of three records with these keys, the first at offset 0."""
    offset, _, keys = text.partition(":")
    if keys:
        first = int(offset)
        by_offset = {first + n: key.encode() for n, key in enumerate(keys)}
        return FetchedBatch(first, first + len(keys) - 1, keys=by_offset)
    return FetchedBatch(*span(text.rstrip("!")), is_aborted=text.endswith("!"))


def played(text: str) -> str:
    stage, lines, before = Stage(), [], ""
    for line in text.splitlines():
        if line.startswith("  "):
            continue
        lines.append(line)
        if line and not line.startswith("#"):
            lines += [f"  {each}" for each in stage.play(line)]
            if (now := stage.state()) != before:
                lines.append(f"  {now}")
            before = now
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_is_reproduced(path: Path) -> None:
    found = played(path.read_text(encoding="utf-8"))
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(found, encoding="utf-8")
    assert found == path.read_text(encoding="utf-8")
