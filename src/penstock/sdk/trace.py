"""The stages of a record on its way through a producer, for a hook that observes them.

caller's thread:    INTERCEPTED → SERIALIZED → PARTITIONED → QUEUED
librdkafka's own:   batches in its queue (the accumulator), requests to brokers (the sender): as
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
    """A stage that a record has passed."""

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
    """None until it is chosen; librdkafka's own partitioner chooses it after QUEUED."""
    latency_ms: float | None = None
    """Time from QUEUED to ACKNOWLEDGED."""


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
