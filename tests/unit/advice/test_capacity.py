"""Sizing of a workload, against figures worked out by hand."""

import pytest

from penstock.advice.capacity import Workload, capacity
from penstock.errors import ConfigError

MIB = 1 << 20


def load(**more: float) -> Workload:
    return Workload(
        **{  # type: ignore[arg-type]  # whole numbers stay whole
            "messages_per_second": 1000,
            "message_bytes": 1000,
            "retention_s": 86_400,
            "replication_factor": 3,
            "compression": 2,
            "spare": 0.2,
            "consumer_groups": 2,
            "brokers": 3,
            **more,
        }
    )


@pytest.mark.row("A164")
def test_storage_is_messages_times_retention_size_and_replicas_plus_a_reserve() -> None:
    need = capacity(load())
    assert need.records_kept == 86_400_000
    assert need.stored_bytes == 1000 * 86_400 * 1000 * 3 // 2
    assert need.disk_bytes == need.stored_bytes * 10 // 8
    assert need.broker_disk_bytes == need.disk_bytes // 3


def test_the_network_carries_producers_followers_and_consumers() -> None:
    need = capacity(load())
    assert need.in_bytes_per_second == 500_000
    assert need.replication_bytes_per_second == 1_000_000
    assert need.out_bytes_per_second == 1_000_000
    assert need.broker_in_bytes_per_second == 500_000
    assert need.broker_out_bytes_per_second == pytest.approx(2_000_000 / 3)


@pytest.mark.row("A163")
@pytest.mark.parametrize(
    ("rate", "brokers", "partitions"),
    [(1, 3, 3), (100 * 1024, 3, 12), (100 * 1024, 4, 12), (100 * 1024, 5, 10), (10 * 1024, 3, 3)],
)
def test_partitions_carry_the_throughput_and_are_a_multiple_of_the_brokers(
    rate: int, brokers: int, partitions: int
) -> None:
    """A partition takes 10 MiB/s: 100 MiB/s need ten of them, or the next multiple."""
    need = capacity(
        load(messages_per_second=rate, message_bytes=1024, compression=1, brokers=brokers)
    )
    assert need.partitions == need.consumers == partitions


def test_slow_consumers_need_more_partitions() -> None:
    slow = load(messages_per_second=10 * 1024, message_bytes=1024, compression=1)
    assert capacity(slow).partitions == 3
    slower = load(
        messages_per_second=10 * 1024,
        message_bytes=1024,
        compression=1,
        partition_out_bytes_per_second=MIB,
    )
    assert capacity(slower).partitions == 12


@pytest.mark.parametrize(
    "wrong",
    [
        {"replication_factor": 4},
        {"brokers": 0},
        {"compression": 0.5},
        {"spare": 1.0},
        {"retention_s": -1},
        {"partition_in_bytes_per_second": 0},
    ],
)
def test_impossible_figures_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        load(**wrong)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize(
    "name",
    [
        "messages_per_second",
        "message_bytes",
        "retention_s",
        "compression",
        "spare",
        "partition_in_bytes_per_second",
        "partition_out_bytes_per_second",
    ],
)
def test_a_figure_that_is_not_finite_is_refused(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        load(**{name: value})


def test_a_workload_too_large_to_compute_is_refused() -> None:
    with pytest.raises(ConfigError, match="too large"):
        capacity(load(messages_per_second=1e308, message_bytes=1e308))
