"""Racks and hosts of brokers, and how far apart the replicas of a partition are. Pure.

Racks count only if every broker has one, as in `placement`. Workers on one machine share a host;
without hosts, every broker counts as alone.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from penstock.types import BrokerId

Racks = Mapping[BrokerId, str | None]
"""The live brokers with their racks, where configured."""

Hosts = Mapping[BrokerId, str]
"""The hosts of the live brokers."""


class BrokerLocations(NamedTuple):
    """The racks and hosts that count."""

    racks: Mapping[BrokerId, str | None]
    hosts: Hosts

    def crowd(self, broker: BrokerId, others: Collection[BrokerId]) -> tuple[int, int]:
        """How many of the others are in the broker's rack, and how many on its host."""
        rack, host = self.racks.get(broker), self.hosts.get(broker)
        return (
            sum(self.racks.get(each) == rack for each in others) if rack is not None else 0,
            sum(self.hosts.get(each) == host for each in others) if host is not None else 0,
        )

    def is_apart(self, after: Iterable[BrokerId], before: Iterable[BrokerId]) -> bool:
        """Whether the replicas are in no fewer racks, and on no fewer hosts, than before."""
        now, then = tuple(after), tuple(before)
        return _count(self.racks, now) >= _count(self.racks, then) and _count(
            self.hosts, now
        ) >= _count(self.hosts, then)


def known_locations(racks: Racks, hosts: Hosts | None) -> BrokerLocations:
    return BrokerLocations(racks if None not in racks.values() else {}, hosts or {})


def _count(named: Mapping[BrokerId, str | None], brokers: Iterable[BrokerId]) -> int:
    """Different names; a broker that is down, whose name is not known, counts as one more."""
    return len({named.get(each) for each in brokers})
