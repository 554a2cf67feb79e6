"""Assignors of the classic protocol; the group's leader runs one.

For members without racks they give the same assignments as the Java client's, so that leaders of
either kind may take over from each other: range and roundrobin exactly, cooperative-sticky in its
rules.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final, TypeAlias

from penstock.types import TopicPartition


@dataclass(frozen=True, slots=True)
class SubscribedMember:
    """A member as the leader sees it: its subscription, and what it owned in `generation`."""

    id: str
    topics: frozenset[str]
    owned: frozenset[TopicPartition] = field(default_factory=frozenset)
    generation: int = -1
    instance_id: str | None = None

    @property
    def rank(self) -> tuple[bool, str]:
        """Sort key: static members first, by instance id, so that restarts change nothing."""
        return self.instance_id is None, self.instance_id or self.id


Assignment: TypeAlias = dict[str, list[TopicPartition]]
"""Partitions by member id; every member has an entry."""


@dataclass(frozen=True, slots=True)
class Assignor:
    """A named strategy; a cooperative one lets members keep partitions during a rebalance."""

    name: str
    assign: Callable[[Sequence[SubscribedMember], Mapping[str, int]], Assignment]
    cooperative: bool = False


def _by_range(members: Sequence[SubscribedMember], counts: Mapping[str, int]) -> Assignment:
    """Consecutive partitions of each topic; the first members get one more where it is uneven."""
    found: Assignment = {member.id: [] for member in members}
    for topic, subscribers in sorted(_subscribers(members, counts).items()):
        share, extra = divmod(counts[topic], len(subscribers))
        at = 0
        for index, member in enumerate(subscribers):
            end = at + share + (index < extra)
            found[member.id] += [TopicPartition(topic, each) for each in range(at, end)]
            at = end
    return found


def _round_robin(members: Sequence[SubscribedMember], counts: Mapping[str, int]) -> Assignment:
    """All partitions in turn, past members that do not subscribe to the topic."""
    found: Assignment = {member.id: [] for member in members}
    subscribers = _subscribers(members, counts)
    turns = cycle(sorted(members, key=lambda each: each.rank))
    for topic in sorted(subscribers):
        for index in range(counts[topic]):
            member = next(each for each in turns if topic in each.topics)
            found[member.id].append(TopicPartition(topic, index))
    return found


def _cooperative_sticky(
    members: Sequence[SubscribedMember], counts: Mapping[str, int]
) -> Assignment:
    """As balanced as subscriptions allow, with as few moves as possible.

    A partition that moves is left unassigned at first: its owner must revoke it, and the rebalance
    that follows assigns it (KIP-429).
    """
    owners = _owners(members, counts)
    found = _balanced(members, counts, owners)
    return {
        member: sorted(each for each in held if owners.get(each, member) == member)
        for member, held in found.items()
    }


def _owners(
    members: Sequence[SubscribedMember], counts: Mapping[str, int]
) -> dict[TopicPartition, str]:
    """Owner of each partition. Of two claims the newer generation wins; if equal, neither."""
    claims: dict[TopicPartition, list[SubscribedMember]] = defaultdict(list)
    for member in members:
        for each in member.owned:
            if each.topic in member.topics and each.partition < counts.get(each.topic, 0):
                claims[each].append(member)
    owners = {}
    for each, claimants in claims.items():
        newest = max(member.generation for member in claimants)
        newest_claimants = [member for member in claimants if member.generation == newest]
        if len(newest_claimants) == 1:
            owners[each] = newest_claimants[0].id
    return owners


def _balanced(
    members: Sequence[SubscribedMember],
    counts: Mapping[str, int],
    owners: Mapping[TopicPartition, str],
) -> dict[str, set[TopicPartition]]:
    held: dict[str, set[TopicPartition]] = {member.id: set() for member in members}
    subscribers = {
        topic: [each.id for each in found] for topic, found in _subscribers(members, counts).items()
    }
    everything = [
        TopicPartition(topic, index)
        # Topics with few subscribers first, because the others have more choice.
        for topic in sorted(subscribers, key=lambda each: (len(subscribers[each]), each))
        for index in range(counts[topic])
    ]
    owner = dict(owners)
    for each, member in owners.items():
        held[member].add(each)

    def lightest(topic: str) -> str:
        return min(subscribers[topic], key=lambda member: len(held[member]))

    for each in everything:
        if each not in owner:
            owner[each] = lightest(each.topic)
            held[owner[each]].add(each)
    moved = True
    while moved:  # ends, because each move reduces the sum of squares
        moved = False
        for each in reversed(everything):
            heavy, light = owner[each], lightest(each.topic)
            if len(held[heavy]) - len(held[light]) >= 2:
                held[heavy].remove(each)
                held[light].add(each)
                owner[each], moved = light, True
    return held


def _subscribers(
    members: Iterable[SubscribedMember], counts: Mapping[str, int]
) -> dict[str, list[SubscribedMember]]:
    """The subscribers of each topic that exists, in order."""
    found = defaultdict(list)
    for member in sorted(members, key=lambda each: each.rank):
        for topic in member.topics:
            if topic in counts:
                found[topic].append(member)
    return dict(found)


RANGE: Final = Assignor("range", _by_range)
ROUND_ROBIN: Final = Assignor("roundrobin", _round_robin)
COOPERATIVE_STICKY: Final = Assignor("cooperative-sticky", _cooperative_sticky, cooperative=True)
ASSIGNORS: Final = {each.name: each for each in (RANGE, ROUND_ROBIN, COOPERATIVE_STICKY)}
