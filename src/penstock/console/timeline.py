"""The fail-over timeline: what changed in a cluster between two looks. Pure."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from penstock.advice.finding import some
from penstock.advice.snapshot import ClusterSnapshot
from penstock.client.metadata import NO_LEADER, PartitionMetadata


class Event(Struct, frozen=True):
    """A change that a look saw for the first time; it happened since the look before."""

    at_ms: int
    kind: str
    """`broker_gone`, `broker_back`, `controller`, `leaders_moved`, `offline`, `online`,
    `isr_shrunk`, `isr_expanded`, `no_answer` or `answers`.
    """
    what: str


def events(before: ClusterSnapshot, now: ClusterSnapshot, at_ms: int) -> list[Event]:
    """The events between two looks, in the order of a fail-over: brokers,
    controller, leaders, replicas.
    """
    found = (*_brokers(before, now), *_controller(before, now), *_partitions(before, now))
    return [Event(at_ms, kind, what) for kind, what in found]


def _brokers(before: ClusterSnapshot, now: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    were, are = set(before.cluster.brokers), set(now.cluster.brokers)
    if were - are:
        yield "broker_gone", f"broker {some(sorted(were - are))} is gone"
    if are - were:
        yield "broker_back", f"broker {some(sorted(are - were))} is there"


def _controller(before: ClusterSnapshot, now: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    was, now_is = before.cluster.controller, now.cluster.controller
    if was == now_is:
        return
    if now_is not in now.cluster.brokers:
        yield "controller", f"there is no controller; it was broker {was}"
    elif was not in before.cluster.brokers:
        yield "controller", f"broker {now_is} is the controller"
    else:
        yield "controller", f"broker {now_is} is the controller; it was broker {was}"


def _partitions(before: ClusterSnapshot, now: ClusterSnapshot) -> Iterator[tuple[str, str]]:
    """Partition events, grouped by broker: a lost broker affects all its partitions."""
    were = _by_name(before)
    moved: dict[tuple[int, int], list[str]] = {}
    left: dict[int, list[str]] = {}
    joined: dict[int, list[str]] = {}
    for name, each in _by_name(now).items():
        was = were.get(name)
        if was is None:
            continue
        if was.leader != each.leader:
            moved.setdefault((was.leader, each.leader), []).append(name)
        for broker in {*was.isr} - {*each.isr}:
            left.setdefault(broker, []).append(name)
        for broker in {*each.isr} - {*was.isr}:
            joined.setdefault(broker, []).append(name)
    for (old, new), names in sorted(moved.items()):
        yield _moved(old, new, names)
    for number, names in sorted(left.items()):
        yield "isr_shrunk", f"broker {number} left the ISR of {_count(names)}"
    for number, names in sorted(joined.items()):
        yield "isr_expanded", f"broker {number} joined the ISR of {_count(names)}"


def _moved(old: int, new: int, names: list[str]) -> tuple[str, str]:
    if new == NO_LEADER:
        return "offline", f"{_count(names)} lost the leader, broker {old}"
    if old == NO_LEADER:
        return "online", f"broker {new} leads {_count(names)}, which had no leader"
    return "leaders_moved", f"broker {new} leads {_count(names)}, which broker {old} led"


def _count(names: list[str]) -> str:
    return f"{len(names)} partition{'s' if len(names) > 1 else ''}: {some(names, 3)}"


def _by_name(seen: ClusterSnapshot) -> Mapping[str, PartitionMetadata]:
    return {
        f"{topic.name}-{each.index}": each
        for topic in seen.topics
        for each in topic.partitions.values()
    }
