"""Partitions as users name them: `topic`, or `topic:0,2`."""

from collections.abc import Sequence
from functools import partial

from penstock.client.cluster import Client
from penstock.errors import ConfigError
from penstock.types import TopicPartition


def parse_scope(texts: Sequence[str]) -> dict[str, list[int] | None]:
    """`t` means all partitions of a topic, `t:0,2` two of them."""
    scope: dict[str, list[int] | None] = {}
    for text in texts:
        name, colon, numbers = text.rpartition(":")
        if not colon:
            scope[text] = None
            continue
        try:
            scope.setdefault(name, [])
            wanted = scope[name]
            if wanted is not None:
                wanted += [int(each) for each in numbers.split(",")]
        except ValueError:
            raise ConfigError(f"{text}: must be TOPIC or TOPIC:PARTITION,...") from None
    return scope


async def chosen_partitions(client: Client, texts: Sequence[str]) -> list[TopicPartition]:
    """The partitions that exist; raises for one that does not."""
    found = []
    for topic, indexes in parse_scope(texts).items():
        known = await client.retrying(partial(client.topic, topic))
        for each in indexes or ():
            if each not in known.partitions:
                last = len(known.partitions) - 1
                raise ConfigError(f"{topic}:{each}: the topic has partitions 0 to {last}")
        chosen = sorted(known.partitions if indexes is None else indexes)
        found += [TopicPartition(topic, index) for index in chosen]
    return found
