"""Counts of a producer's records between QUEUED and ACKNOWLEDGED, from librdkafka's statistics.

    accumulator   records wait in their partition's queue for a batch (`linger.ms`, `batch.size`)
    sender        requests wait first for the socket, then for the broker's response

librdkafka reports these stages as sums, every `statistics.interval.ms`, not per record.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

logger = logging.getLogger(__name__)

INTERVAL_MS: Final = 1_000
UNASSIGNED: Final = "-1"
"""Partition under which librdkafka counts records of topics that it does not know yet."""


@dataclass(frozen=True, slots=True)
class PartitionStages:
    """A partition's records now, and since the producer began."""

    topic: str
    partition: int | None
    """None: not chosen yet, because the topic's partitions are unknown."""
    leader: int
    accumulated: int
    """Records in the accumulator."""
    accumulated_bytes: int
    in_flight: int
    """Records in requests without a response yet."""
    sent: int
    """Records put into requests; a retry counts again."""


@dataclass(frozen=True, slots=True)
class SenderStages:
    """Requests to a broker now, and mean times in the last interval; None if nothing was sent."""

    broker: int
    unsent: int
    """Requests that wait for the socket."""
    in_flight: int
    accumulator_ms: float | None
    """Time from QUEUED until a record is put into a request."""
    socket_ms: float | None
    """Time from then until the request is written to the socket."""
    answer_ms: float | None
    """Time from then until its response."""


@dataclass(frozen=True, slots=True)
class ProducerStages:
    """A snapshot of a producer."""

    at_ms: int
    """Epoch milliseconds, in whole seconds."""
    unfinished: int
    """Queued records whose delivery is not reported yet."""
    partitions: Sequence[PartitionStages]
    senders: Sequence[SenderStages]


StagesHook: TypeAlias = Callable[[ProducerStages], None]


def stages_of(statistics: str) -> ProducerStages:
    """Parse librdkafka's statistics JSON."""
    found: Any = msgspec.json.decode(statistics)
    return ProducerStages(
        found["time"] * 1000,
        found["msg_cnt"],
        [
            PartitionStages(
                name,
                None if number == UNASSIGNED else int(number),
                each["leader"],
                each["msgq_cnt"] + each["xmit_msgq_cnt"],
                each["msgq_bytes"] + each["xmit_msgq_bytes"],
                each["msgs_inflight"],
                each["txmsgs"],
            )
            for name, topic in found["topics"].items()
            for number, each in topic["partitions"].items()
            if number != UNASSIGNED or each["msgq_cnt"]
        ],
        [
            SenderStages(
                each["nodeid"],
                each["outbuf_cnt"],
                each["waitresp_cnt"],
                *(_mean_ms(each[name]) for name in ("int_latency", "outbuf_latency", "rtt")),
            )
            for each in found["brokers"].values()
            if each["nodeid"] >= 0
        ],
    )


def stats_callback(
    hook: StagesHook, also: Callable[[str], None] | None = None
) -> Callable[[str], None]:
    """A `stats_cb` for librdkafka that calls `hook`, after the application's own callback."""

    def tell(statistics: str) -> None:
        if also is not None:
            also(statistics)
        try:
            hook(stages_of(statistics))
        except Exception:
            logger.exception("the hook of stages failed")

    return tell


def _mean_ms(window: Any) -> float | None:
    return window["avg"] / 1000 if window["cnt"] else None
