"""Where a producer's records are between QUEUED and ACKNOWLEDGED, by librdkafka's statistics.

    accumulator   records wait in their partition's queue for a batch (`linger.ms`, `batch.size`)
    sender        batches are requests: first for the socket, then for the broker's answer

librdkafka tells of these stages in sums, every `statistics.interval.ms`, not of single records.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import msgspec

logger = logging.getLogger(__name__)

INTERVAL_MS: Final = 1_000
UNASSIGNED: Final = "-1"
"""Where librdkafka counts records whose topic it does not know yet."""


@dataclass(frozen=True, slots=True)
class PartitionStages:
    """A partition's records now, and since the producer began."""

    topic: str
    partition: int | None
    """None: nobody has chosen it yet, since the topic's partitions are not known."""
    leader: int
    accumulated: int
    """Records in the accumulator."""
    accumulated_bytes: int
    in_flight: int
    """Records in requests that are not answered."""
    sent: int
    """Records that were put into requests; a retry counts again."""


@dataclass(frozen=True, slots=True)
class SenderStages:
    """Requests to a broker now, and mean times of what was sent in the last interval, if any."""

    broker: int
    unsent: int
    """Requests that wait for the socket."""
    in_flight: int
    accumulator_ms: float | None
    """From QUEUED until a record was put into a request."""
    socket_ms: float | None
    """From then until the request was written."""
    answer_ms: float | None
    """From then until its answer."""


@dataclass(frozen=True, slots=True)
class ProducerStages:
    """A look at a producer."""

    at_ms: int
    """Epoch milliseconds, of a whole second."""
    unfinished: int
    """Records that are queued and not reported."""
    partitions: Sequence[PartitionStages]
    senders: Sequence[SenderStages]


StagesHook: TypeAlias = Callable[[ProducerStages], None]


def stages_of(statistics: str) -> ProducerStages:
    """What librdkafka's JSON says."""
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


def told(hook: StagesHook, also: Callable[[str], None] | None = None) -> Callable[[str], None]:
    """For librdkafka's `stats_cb`; the application's own goes first."""

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
