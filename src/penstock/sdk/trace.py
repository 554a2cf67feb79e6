"""The stages of a record's way through a producer, for a hook that watches them.

caller's thread:    INTERCEPTED → SERIALIZED → PARTITIONED → QUEUED
librdkafka's own:   batches in its queue (the accumulator), requests to brokers (the sender): in
                    sums only, by the hook of `penstock.sdk.stages`
producer's thread:  ACKNOWLEDGED, or FAILED
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Stage(Enum):
    """A stage that was passed."""

    INTERCEPTED = "intercepted"
    SERIALIZED = "serialized"
    PARTITIONED = "partitioned"
    QUEUED = "queued"
    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Trace:
    """One record at one stage."""

    stage: Stage
    topic: str
    number: int
    """Counts the records of this producer from 1."""
    thread: str
    partition: int | None = None
    """None until somebody chose it; librdkafka's own partitioner does so behind QUEUED."""
    latency_ms: float | None = None
    """From QUEUED to ACKNOWLEDGED."""


logger = logging.getLogger(__name__)

TraceHook: TypeAlias = Callable[[Trace], None]


def traced(
    hook: TraceHook,
    stage: Stage,
    topic: str,
    number: int,
    partition: int | None = None,
    latency_ms: float | None = None,
) -> None:
    try:
        hook(Trace(stage, topic, number, threading.current_thread().name, partition, latency_ms))
    except Exception:
        logger.exception("the trace hook failed")
