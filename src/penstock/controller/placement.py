"""The assignment of replicas to brokers. Pure: the random start is an argument.

Two goals: every broker gets its share of replicas, and when a broker dies, its partitions' next
leaders are spread over all the others. Replica 0 of partition i goes to broker i + start around
the ring; the others follow it at a distance that grows by one with each round of the ring.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count, islice, zip_longest

from penstock.controller.broker_locations import Hosts, Racks
from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId

Assignment = dict[int, tuple[BrokerId, ...]]
"""The replicas of each partition; the first is the preferred leader."""


MANUAL = "The manual partition assignment includes"


class InvalidReplicationFactor(KafkaError):
    """Not positive, or more replicas than there are brokers."""

    code = ErrorCode.INVALID_REPLICATION_FACTOR


class InvalidReplicaAssignment(KafkaError):
    """A manual assignment that is not possible."""

    code = ErrorCode.INVALID_REPLICA_ASSIGNMENT


def placed(
    racks: Racks,
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
    hosts: Hosts | None = None,
) -> Assignment:
    """Replicas for `partitions` partitions, numbered from `first_partition`.

    Racks count only if every broker has one; otherwise brokers without a rack would be crowded.
    Brokers of one host, such as its workers, are kept apart as long as there are enough hosts.
    """
    if replication_factor > len(racks):
        raise InvalidReplicationFactor(
            f"Unable to replicate the partition {replication_factor} time(s): The target "
            f"replication factor of {replication_factor} cannot be reached because only "
            f"{len(racks)} broker(s) are registered or some brokers have all their log directories "
            "cordoned."
        )
    known = {broker: rack for broker, rack in racks.items() if rack is not None}
    aware = len(known) == len(racks)
    on = hosts or {}
    shared = 1 < len(set(on.values())) < len(on)
    spread = known if aware else _host_order(on) if shared else {}
    ring = _alternating(spread) if spread else sorted(racks)
    shift -= max(first_partition - 1, 0) // len(ring)
    assignment = {}
    for index in range(first_partition, first_partition + partitions):
        first = (index + start) % len(ring)
        distance = shift + index // len(ring)
        if shared:
            followers = iter(_apart(ring, known if aware else {}, on, first, distance))
        elif aware:
            followers = _over_racks(ring, known, first, distance)
        else:
            followers = _around(ring, first, distance)
        assignment[index] = (ring[first], *islice(followers, replication_factor - 1))
    return assignment


def _around(ring: Sequence[BrokerId], first: int, distance: int) -> Iterator[BrokerId]:
    """All brokers except the first, starting at some distance behind it; cycles for ever."""
    others = max(len(ring) - 1, 1)
    for step in count(distance):
        yield ring[(first + 1 + step % others) % len(ring)]


def _over_racks(
    ring: Sequence[BrokerId], racks: Mapping[BrokerId, str], first: int, distance: int
) -> Iterator[BrokerId]:
    """Like `_around`, but no rack repeats before all were used, and no broker repeats."""
    every = set(racks.values())
    taken, served = {ring[first]}, {racks[ring[first]]}
    for broker in _around(ring, first, distance * len(every)):
        if (racks[broker] in served and served != every) or broker in taken:
            continue
        taken.add(broker)
        served.add(racks[broker])
        yield broker
        if len(taken) == len(ring):
            return


def _apart(
    ring: Sequence[BrokerId],
    racks: Mapping[BrokerId, str],
    hosts: Hosts,
    first: int,
    distance: int,
) -> list[BrokerId]:
    """All brokers except the first: next comes the one whose rack, then whose host, has the fewest
    replicas so far, and among equals the next around the ring.
    """
    left = list(islice(_around(ring, first, distance), len(ring) - 1))
    in_rack = Counter([racks.get(ring[first])])
    on_host = Counter([hosts.get(ring[first])])
    found: list[BrokerId] = []
    while left:
        best = min(left, key=lambda each: (in_rack[racks.get(each)], on_host[hosts.get(each)]))
        left.remove(best)
        found.append(best)
        in_rack[racks.get(best)] += 1
        on_host[hosts.get(best)] += 1
    return found


def _host_order(hosts: Hosts) -> dict[BrokerId, str]:
    """Names of the hosts that sort as their first brokers do."""
    first: dict[str, BrokerId] = {}
    for broker in sorted(hosts):
        first.setdefault(hosts[broker], broker)
    return {broker: f"{first[host]:010d}" for broker, host in hosts.items()}


def _alternating(racks: Mapping[BrokerId, str]) -> list[BrokerId]:
    """The brokers ordered so that neighbours are in different racks, as far as possible."""
    by_rack: dict[str, list[BrokerId]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    rounds = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    return [broker for each in rounds for broker in each if broker is not None]


def chosen(assignments: Iterable[tuple[int, Sequence[int]]], live: Collection[int]) -> Assignment:
    """A manual assignment for a new topic, checked: partitions are numbered from 0 without gaps."""
    pairs = list(assignments)
    assignment: dict[int, tuple[BrokerId, ...]] = {}
    for index, replicas in pairs:
        if index in assignment:
            raise InvalidReplicaAssignment(
                f"Found multiple manual partition assignments for partition {index}"
            )
        assignment[index] = chosen_replicas(replicas, live)
    if set(assignment) != set(range(len(assignment))):
        raise InvalidReplicaAssignment(
            "partitions should be a consecutive 0-based integer sequence"
        )
    check_even(assignment.values())
    return assignment


def chosen_replicas(replicas: Sequence[int], live: Collection[int]) -> tuple[BrokerId, ...]:
    if not replicas:
        raise InvalidReplicaAssignment(f"{MANUAL} an empty replica list.")
    for broker in sorted(replicas):
        if broker not in live:
            raise InvalidReplicaAssignment(
                f"{MANUAL} broker {broker}, but no such broker is registered."
            )
    twice = sorted(broker for broker, count in Counter(replicas).items() if count > 1)
    if twice:
        raise InvalidReplicaAssignment(f"{MANUAL} the broker {twice[0]} more than once.")
    return tuple(map(BrokerId, replicas))


def check_even(assignments: Iterable[Sequence[BrokerId]]) -> None:
    """Refuse partitions of one topic with different numbers of replicas."""
    if len(sizes := {len(replicas) for replicas in assignments}) > 1:
        raise InvalidReplicaAssignment(
            f"the partitions have different replication factors: {sorted(sizes)}"
        )


def new_replication_factor(asked: int, default: int) -> int:
    """How many replicas a new topic gets; -1 requests the broker's default (KIP-464)."""
    if asked == 0 or asked < -1:
        raise InvalidReplicationFactor(
            "Replication factor must be larger than 0, or -1 to use the default value."
        )
    return default if asked == -1 else asked
