"""Records of share groups in flight on this broker: an HTTP page, and metrics."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from penstock.broker.context import Services
from penstock.broker.share.led_share_partition import LedSharePartition
from penstock.clock import Clock
from penstock.coordinator.share.state import RecordState
from penstock.http.prometheus import Metric, Sample, gauge, labels

HELD, WAITING = RecordState.ACQUIRED, RecordState.AVAILABLE
LETTER = RecordState.ARCHIVING


class InFlightRun(Struct, frozen=True):
    """Neighbouring records between the first unfinished and the last delivered one."""

    topic: str
    partition: int
    first: int
    last: int
    state: str
    """`acquired`, `available`, `acknowledged`, `archiving` (a dead letter is written) or
    `archived`.
    """
    deliveries: int
    member: str | None = None
    lock_ms: int | None = None
    """The remaining time of the member's lock."""
    invisible_ms: int | None = None
    """How long until the records can be delivered again."""


def records_in_flight(services: Services, clock: Clock, group: str) -> list[InFlightRun]:
    """Records in partitions that this broker leads, as far as the group reads them now."""
    now_ms = clock.monotonic_ms()
    return [
        InFlightRun(
            *each.partition.topic_partition,
            run.first,
            run.last,
            run.state.name.lower(),
            run.count,
            run.owner or None,
            max(run.deadline_ms - now_ms, 0) if run.state is HELD else None,
            run.visible_ms - now_ms if run.state is WAITING and run.visible_ms > now_ms else None,
        )
        for each in services.share.partitions
        if each.key.group == group and each.state is not None
        for run in each.state.runs
    ]


def share_metrics(services: Services) -> dict[str, Metric]:
    def by_partition(
        read: Callable[[LedSharePartition], int],
    ) -> Callable[[], Iterator[Sample]]:
        def samples() -> Iterator[Sample]:
            for each in list(services.share.partitions):
                if each.state is not None:
                    topic, index = each.partition.topic_partition
                    named = labels(group=each.key.group, topic=topic, partition=str(index))
                    yield Sample(read(each), named)

        return samples

    def counted(state: RecordState) -> Callable[[LedSharePartition], int]:
        return lambda each: sum(
            run.size for run in (each.state.runs if each.state else ()) if run.state is state
        )

    def lag(each: LedSharePartition) -> int:
        assert each.state is not None
        finished = sum(run.size for run in each.state.runs if run.state.is_final)
        return max(each.partition.log.high_watermark - each.state.start_offset - finished, 0)

    def members() -> Iterator[Sample]:
        for shard in services.coordination.groups.runtime.loaded_shards():
            for group in list(shard.share_groups.values()):
                yield Sample(len(group.members), labels(group=group.id))

    prefix = "penstock_share_group"
    return {
        f"{prefix}_members": gauge("Members of a share group.", members),
        f"{prefix}_lag": gauge("Records that are not finished.", by_partition(lag)),
        f"{prefix}_acquired_records": gauge(
            "Records that members have.", by_partition(counted(HELD))
        ),
        f"{prefix}_waiting_records": gauge(
            "Records that were handed out before and wait for a member.",
            by_partition(counted(WAITING)),
        ),
        f"{prefix}_waiting_dead_letters": gauge(
            "Records whose dead letters are not written yet.", by_partition(counted(LETTER))
        ),
        f"{prefix}_failed_in_a_row": gauge(
            "Deliveries that failed since one succeeded, which the circuit breaker counts.",
            by_partition(lambda each: each.failed_in_a_row),
        ),
    }
