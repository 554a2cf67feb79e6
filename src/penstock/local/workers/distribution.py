"""Decides which replicas move when the number of workers changes. Pure.

Each topic is spread evenly, and so are the remainders of all topics together. A replica never moves
to a worker that has one of the same partition, not even if that one leaves: so each move is
independent, and can be repeated after a crash.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from penstock.errors import ConfigError
from penstock.local.workers.layout import Move
from penstock.types import TopicPartition


class TooManyReplicas(ConfigError):
    """A partition has more replicas than there will be workers."""


def moves(holders: Mapping[TopicPartition, Collection[int]], workers: int) -> list[Move]:
    """The moves that give each of `workers` workers its share; `holders` are worker indexes."""
    by_topic: defaultdict[str, list[TopicPartition]] = defaultdict(list)
    for topic_partition in sorted(holders):
        by_topic[topic_partition.topic].append(topic_partition)
    totals = [0] * workers
    found: list[Move] = []
    for partitions in by_topic.values():
        counts = Counter(worker for each in partitions for worker in holders[each])
        shares = _shares(counts, totals, workers)
        for worker, share in enumerate(shares):
            totals[worker] += share
        for topic_partition in reversed(partitions):
            found += _moved(topic_partition, set(holders[topic_partition]), counts, shares)
    return found


def _shares(counts: Mapping[int, int], totals: list[int], workers: int) -> list[int]:
    """How many replicas of a topic each worker gets. The remainder goes to the workers with the
    fewest replicas so far, and among those to the ones that have replicas of the topic already.
    """
    share, rest = divmod(sum(counts.values()), workers)
    shares = [share] * workers
    preferred = sorted(range(workers), key=lambda each: (totals[each], -counts.get(each, 0), each))
    for worker in preferred[:rest]:
        shares[worker] += 1
    return shares


def _moved(
    topic_partition: TopicPartition, held_by: set[int], counts: Counter[int], shares: list[int]
) -> Iterable[Move]:
    """The moves of one partition; `counts` is updated."""
    workers = len(shares)
    taken = set(held_by)
    for source in sorted(held_by):
        leaves = source >= workers
        if not leaves and counts[source] <= shares[source]:
            continue
        free = [each for each in range(workers) if each not in taken]
        if not leaves:
            free = [each for each in free if counts[each] < shares[each]]
        if not free:
            if leaves:
                raise TooManyReplicas(
                    f"--workers {workers}: partition {topic_partition} has {len(held_by)} replicas;"
                    " keep more workers, or lower its replication factor first, while they run "
                    f"(penstock reassign plan --topic {topic_partition.topic} "
                    f"--replication-factor {workers})"
                )
            continue
        target = min(free, key=lambda each: (counts[each] - shares[each], each))
        taken.add(target)
        counts[source] -= 1
        counts[target] += 1
        yield Move(topic_partition.topic, topic_partition.partition, source, target)
