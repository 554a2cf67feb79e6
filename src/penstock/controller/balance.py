"""How replicas that exist would be spread evenly, with as few of them moved as possible. Pure.

A broker that joins a cluster gets new partitions only: what is there stays where it is until
somebody moves it. A plan never puts two replicas on one broker, nor a partition into fewer racks.
"""

from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from penstock.controller.placement import InvalidReplicaAssignment, Racks
from penstock.types import BrokerId, TopicPartition

Replicas = Mapping[TopicPartition, tuple[BrokerId, ...]]
Led = dict[BrokerId, set[TopicPartition]]


class Move(NamedTuple):
    """A partition whose replicas are to be others, or in another order."""

    where: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]

    @property
    def copied(self) -> int:
        """Replicas that have to be made; a new order copies nothing."""
        return len(set(self.after) - set(self.before))


class Load(NamedTuple):
    """What a broker holds: replicas, and partitions of which it is the preferred leader."""

    replicas: int
    leaders: int


def loads(replicas: Iterable[tuple[BrokerId, ...]], brokers: Iterable[BrokerId]) -> dict[int, Load]:
    """By broker, those without anything included."""
    assigned = list(replicas)
    held = Counter(broker for each in assigned for broker in each)
    led = Counter(each[0] for each in assigned)
    return {broker: Load(held[broker], led[broker]) for broker in sorted({*brokers, *held})}


def balanced(replicas: Replicas, racks: Racks, *, without: Collection[int] = ()) -> list[Move]:
    """The moves after which each live broker has its share, and those of `without` nothing.

    Replicas on brokers that are down stay there: such a broker mostly comes back with its data.
    """
    plan = _Plan(replicas, {each: rack for each, rack in racks.items() if each not in without})
    plan.empty(without)
    plan.spread_replicas()
    plan.spread_leaders()
    return [
        Move(where, replicas[where], after)
        for where, after in plan.replicas.items()
        if after != replicas[where]
    ]


class _Plan:
    """The replicas as they would be, changed in place while the plan is made."""

    def __init__(self, replicas: Replicas, racks: Racks) -> None:
        self.replicas = dict(sorted(replicas.items()))
        # As in placement: half a map of racks is none.
        self._racks = racks if None not in racks.values() else dict.fromkeys(racks)
        self._held: dict[BrokerId, set[TopicPartition]] = {broker: set() for broker in racks}
        self._by_topic: Counter[tuple[BrokerId, str]] = Counter()
        for where, brokers in self.replicas.items():
            for broker in brokers:
                self._by_topic[broker, where.topic] += 1
                self._held.setdefault(broker, set()).add(where)

    def empty(self, brokers: Collection[int]) -> None:
        """Everything that these hold goes to whoever has least and may have it."""
        for broker in map(BrokerId, sorted(brokers)):
            for where in sorted(self._held.get(broker, ())):
                able = [each for each in self._racks if self._may_move(where, broker, each)]
                if not able:
                    raise InvalidReplicaAssignment(
                        f"{where} has a replica on broker {broker}, and no other broker that is "
                        "alive can take it"
                    )
                taker = min(
                    able,
                    key=lambda each: (
                        len(self._held[each]),
                        self._by_topic[each, where.topic],
                        each,
                    ),
                )
                self._move(where, broker, taker)

    def spread_replicas(self) -> None:
        """From whoever has most to whoever has least, while they are two apart.

        No plan with fewer moves ends as even. Without racks there is always something to move: of
        two brokers the one with more holds a partition that the other does not.
        """
        while step := self._next_step():
            self._move(*step)

    def _next_step(self) -> tuple[TopicPartition, BrokerId, BrokerId] | None:
        by_load = sorted(self._racks, key=lambda each: (len(self._held[each]), each))
        for giver in reversed(by_load):
            for taker in by_load:
                if len(self._held[giver]) - len(self._held[taker]) < 2:
                    break
                able = [
                    where
                    for where in self._held[giver] - self._held[taker]
                    if self._may_move(where, giver, taker)
                ]
                if able:
                    # The topic that is most uneven between the two is spread by the way.
                    best = min(
                        able,
                        key=lambda where: (
                            self._by_topic[taker, where.topic] - self._by_topic[giver, where.topic],
                            where,
                        ),
                    )
                    return best, giver, taker
        return None

    def spread_leaders(self) -> None:
        """By another order of the replicas, which moves no data."""
        led: Led = {broker: set() for broker in self._racks}
        for where, brokers in self.replicas.items():
            if brokers[0] in led:
                led[brokers[0]].add(where)
        while found := self._next_way(led):
            leader, way = found
            for where, heir in way:
                others = [each for each in self.replicas[where] if each != heir]
                self.replicas[where] = (heir, *others)
                led[leader].remove(where)
                led[heir].add(where)
                leader = heir

    def _next_way(self, led: Led) -> tuple[BrokerId, list[tuple[TopicPartition, BrokerId]]] | None:
        """Whoever leads most and can hand something on. All are asked again after each change:
        it may have opened a way for others.
        """
        for giver in sorted(led, key=lambda each: (-len(led[each]), each)):
            if way := self._way_to_fewer(giver, led):
                return giver, way
        return None

    def _way_to_fewer(
        self, giver: BrokerId, led: Led
    ) -> list[tuple[TopicPartition, BrokerId]] | None:
        """Partitions to hand on, each from leader to heir, until it reaches one who leads fewer
        by two. Often it takes a go-between, who then leads as many as before.
        """
        came: dict[BrokerId, tuple[BrokerId, TopicPartition] | None] = {giver: None}
        waiting = deque([giver])
        while waiting:
            leader = waiting.popleft()
            if len(led[giver]) - len(led[leader]) >= 2:
                way = []
                while step := came[leader]:
                    way.append((step[1], leader))
                    leader = step[0]
                return way[::-1]
            for where in sorted(led[leader]):
                for heir in self.replicas[where]:
                    if heir in led and heir not in came:
                        came[heir] = leader, where
                        waiting.append(heir)
        return None

    def _may_move(self, where: TopicPartition, giver: BrokerId, taker: BrokerId) -> bool:
        before = self.replicas[where]
        if taker in before:
            return False
        stay = {self._racks.get(each) for each in before if each != giver}
        kept_apart = len({*stay, self._racks.get(giver)})
        return len({*stay, self._racks.get(taker)}) >= kept_apart

    def _move(self, where: TopicPartition, giver: BrokerId, taker: BrokerId) -> None:
        """The taker has the giver's place in the order: the new broker leads where it led."""
        self.replicas[where] = tuple(
            taker if each == giver else each for each in self.replicas[where]
        )
        self._held[giver].remove(where)
        self._held[taker].add(where)
        self._by_topic[giver, where.topic] -= 1
        self._by_topic[taker, where.topic] += 1
