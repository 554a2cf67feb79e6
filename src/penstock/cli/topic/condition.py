"""Filters of topics and partitions by their health, as in kafka-topics.sh."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import click

from penstock.client.cluster import Client
from penstock.client.metadata import NO_LEADER, PartitionMetadata
from penstock.errors import KafkaError

MIN_ISR = "min.insync.replicas"


@dataclass(frozen=True, slots=True)
class Condition:
    """Selects partitions by health; all partitions if no flag is set."""

    under_replicated: bool = False
    at_min_isr: bool = False
    under_min_isr: bool = False
    unavailable: bool = False

    def __bool__(self) -> bool:
        return any((self.under_replicated, self.at_min_isr, self.under_min_isr, self.unavailable))

    @property
    def needs_min_isr(self) -> bool:
        return self.at_min_isr or self.under_min_isr

    def meets(self, partition: PartitionMetadata, min_isr: int) -> bool:
        in_sync = len(partition.isr)
        return not self or any(
            (
                self.under_replicated and in_sync < len(partition.replicas),
                self.at_min_isr and in_sync == min_isr,
                self.under_min_isr and in_sync < min_isr,
                self.unavailable and partition.leader == NO_LEADER,
            )
        )


def conditions(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options; `condition_of` collects them."""
    for name, text in (
        ("--unavailable", "Only partitions without a leader."),
        ("--under-min-isr", "Only partitions with fewer in-sync replicas than needed."),
        ("--at-min-isr", "Only partitions that cannot lose an in-sync replica."),
        ("--under-replicated", "Only partitions with a replica that is not in sync."),
    ):
        command = click.option(name, is_flag=True, help=text)(command)
    return command


def condition_of(given: dict[str, Any]) -> Condition:
    """The condition of the options, which are removed from `given`."""
    return Condition(**{name: given.pop(name) for name in Condition.__slots__})


async def min_isrs(client: Client, topics: Collection[str]) -> dict[str, int]:
    """`min.insync.replicas` by topic; 1 if it may not be read."""
    from penstock.client.configs import Resource, describe_configs  # late: rarely needed
    from penstock.config.resource_type import ConfigResourceType

    found = {}
    for each in topics:
        try:
            resource = Resource(ConfigResourceType.TOPIC, each)
            entry = (await describe_configs(client, resource, names=[MIN_ISR])).get(MIN_ISR)
            found[each] = int(entry.value) if entry is not None and entry.value else 1
        except KafkaError:
            found[each] = 1
    return found
