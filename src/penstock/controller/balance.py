"""A plan that spreads existing replicas evenly with as few moves as possible. Pure.

A broker that joins a cluster gets only new partitions; existing replicas stay until they are moved.
A plan never puts two replicas of a partition on one broker. It puts them into fewer racks, or onto
fewer hosts, only if the leaving brokers are the last ones of a rack or host.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from penstock.controller.broker_locations import Hosts, Racks, known_locations
from penstock.controller.placement import InvalidReplicaAssignment
from penstock.types import BrokerId, TopicPartition

Replicas = Mapping[TopicPartition, tuple[BrokerId, ...]]
Led = dict[BrokerId, set[TopicPartition]]


class PlannedMove(NamedTuple):
    """A partition that gets other replicas, or the same in another order."""

    topic_partition: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]

    @property
    def copied(self) -> int:
        """Replicas that must be copied; a new order alone copies nothing."""
        return len(set(self.after) - set(self.before))


class Load(NamedTuple):
    """A broker's number of replicas, and of partitions whose preferred leader it is."""

    replicas: int
    leaders: int


def loads(replicas: Iterable[tuple[BrokerId, ...]], brokers: Iterable[BrokerId]) -> dict[int, Load]:
    """The load of every broker, including those without replicas."""
    assigned = list(replicas)
    held = Counter(broker for each in assigned for broker in each)
    led = Counter(each[0] for each in assigned)
    return {broker: Load(held[broker], led[broker]) for broker in sorted({*brokers, *held})}


def balanced(
    replicas: Replicas, racks: Racks, *, without: Collection[int] = (), hosts: Hosts | None = None
) -> list[PlannedMove]:
    """The moves that give each live broker its share, and the brokers in `without` nothing.

    Replicas on brokers that are down stay: such a broker usually comes back with its data.
    """
    staying = {each: rack for each, rack in racks.items() if each not in without}
    plan = _Plan(replicas, staying, hosts)
    plan.empty(without)
    plan.spread_replicas()
    plan.spread_leaders()
    return [
        PlannedMove(topic_partition, replicas[topic_partition], after)
        for topic_partition, after in plan.replicas.items()
        if after != replicas[topic_partition]
    ]


class _Plan:
    """The planned replicas, changed in place while the plan is made."""

    def __init__(self, replicas: Replicas, racks: Racks, hosts: Hosts | None) -> None:
        self.replicas = dict(sorted(replicas.items()))
        self._takers = tuple(racks)
        self._locations = known_locations(racks, hosts)
        self._held: dict[BrokerId, set[TopicPartition]] = {broker: set() for broker in racks}
        self._by_topic: Counter[tuple[BrokerId, str]] = Counter()
        for topic_partition, brokers in self.replicas.items():
            for broker in brokers:
                self._by_topic[broker, topic_partition.topic] += 1
                self._held.setdefault(broker, set()).add(topic_partition)

    def empty(self, brokers: Collection[int]) -> None:
        """Move all replicas off these brokers, each to the broker farthest from the replicas that
        stay, and among equals to the least loaded.
        """
        for broker in map(BrokerId, sorted(brokers)):
            for topic_partition in sorted(self._held.get(broker, ())):
                before = self.replicas[topic_partition]
                able = [each for each in self._takers if each not in before]
                if not able:
                    raise InvalidReplicaAssignment(
                        f"{topic_partition} has a replica on broker {broker}, and no other "
                        "live broker can take it"
                    )
                stay = [each for each in before if each not in brokers]
                taker = min(
                    able,
                    key=lambda each: (
                        self._locations.crowd(each, stay),
                        len(self._held[each]),
                        self._by_topic[each, topic_partition.topic],
                        each,
                    ),
                )
                self._move(topic_partition, broker, taker)

    def spread_replicas(self) -> None:
        """Move from the most to the least loaded broker while they differ by two or more.

        No plan with fewer moves is as even. Without racks a move always exists: the more loaded of
        two brokers holds a partition that the other does not.
        """
        while step := self._next_step():
            self._move(*step)

    def _next_step(self) -> tuple[TopicPartition, BrokerId, BrokerId] | None:
        by_load = sorted(self._takers, key=lambda each: (len(self._held[each]), each))
        for giver in reversed(by_load):
            for taker in by_load:
                if len(self._held[giver]) - len(self._held[taker]) < 2:
                    break
                able = [
                    topic_partition
                    for topic_partition in self._held[giver] - self._held[taker]
                    if self._may_move(topic_partition, giver, taker)
                ]
                if able:
                    # Prefer the topic that is most uneven between the two brokers.
                    best = min(
                        able,
                        key=lambda topic_partition: (
                            self._by_topic[taker, topic_partition.topic]
                            - self._by_topic[giver, topic_partition.topic],
                            topic_partition,
                        ),
                    )
                    return best, giver, taker
        return None

    def spread_leaders(self) -> None:
        """Reorder replicas to spread preferred leaders; this moves no data."""
        led: Led = {broker: set() for broker in self._takers}
        for topic_partition, brokers in self.replicas.items():
            if brokers[0] in led:
                led[brokers[0]].add(topic_partition)
        while found := self._next_handover(led):
            leader, path = found
            for topic_partition, heir in path:
                others = [each for each in self.replicas[topic_partition] if each != heir]
                self.replicas[topic_partition] = (heir, *others)
                led[leader].remove(topic_partition)
                led[heir].add(topic_partition)
                leader = heir

    def _next_handover(
        self, led: Led
    ) -> tuple[BrokerId, list[tuple[TopicPartition, BrokerId]]] | None:
        """The broker that leads most and can hand leadership on. Every broker is tried again after
        each change, because a change may open a path for another.
        """
        for giver in sorted(led, key=lambda each: (-len(led[each]), each)):
            if path := self._path_to_fewer(giver, led):
                return giver, path
        return None

    def _path_to_fewer(
        self, giver: BrokerId, led: Led
    ) -> list[tuple[TopicPartition, BrokerId]] | None:
        """Partitions to hand on, each from leader to heir, up to a broker that leads two fewer than
        the giver. Brokers in between lead as many as before. A breadth-first search.
        """
        came: dict[BrokerId, tuple[BrokerId, TopicPartition] | None] = {giver: None}
        waiting = deque([giver])
        while waiting:
            leader = waiting.popleft()
            if len(led[giver]) - len(led[leader]) >= 2:
                path = []
                while step := came[leader]:
                    path.append((step[1], leader))
                    leader = step[0]
                return path[::-1]
            for topic_partition in sorted(led[leader]):
                for heir in self.replicas[topic_partition]:
                    if heir in led and heir not in came:
                        came[heir] = leader, topic_partition
                        waiting.append(heir)
        return None

    def _may_move(self, topic_partition: TopicPartition, giver: BrokerId, taker: BrokerId) -> bool:
        before = self.replicas[topic_partition]
        if taker in before:
            return False
        after = (*(each for each in before if each != giver), taker)
        return self._locations.is_apart(after, before)

    def _move(self, topic_partition: TopicPartition, giver: BrokerId, taker: BrokerId) -> None:
        """The taker gets the giver's position in the order, and so its preferred leadership."""
        self.replicas[topic_partition] = tuple(
            taker if each == giver else each for each in self.replicas[topic_partition]
        )
        self._held[giver].remove(topic_partition)
        self._held[taker].add(topic_partition)
        self._by_topic[giver, topic_partition.topic] -= 1
        self._by_topic[taker, topic_partition.topic] += 1
