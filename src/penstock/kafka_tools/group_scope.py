"""Which groups and partitions options mean: `--all-groups`, `--topic t` or `--topic t:0,2`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.kafka_tools.parser import Arguments, UsageError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.groups import GroupListing


async def consumer_groups(client: "Client") -> "list[GroupListing]":
    """The groups that Kafka's consumers form. Share, streams and Connect's groups have tools of
    their own, and `--delete --all-groups` must not reach them.
    """
    from penstock.client.groups import list_groups  # late: `--help` needs no client

    return [
        each
        for each in await list_groups(client)
        if each.protocol_type in {"consumer", ""}
        and each.type.lower() in {"classic", "consumer", ""}
    ]


async def named_groups(args: Arguments, client: "Client") -> list[str]:
    """`--group`, each once, or `--all-groups`."""
    if args.has("all-groups"):
        return [each.id for each in await consumer_groups(client)]
    return list(dict.fromkeys(args.all("group")))


def topic_scope(given: Iterable[str]) -> dict[str, list[int]]:
    """Indexes by topic; none means all of its partitions."""
    found: dict[str, list[int]] = {}
    for text in given:
        topic, colon, indexes = text.partition(":")
        try:
            wanted = [int(each) for each in indexes.split(",")] if colon else []
        except ValueError:
            raise UsageError(f"--topic {text}: partitions must be like {topic}:0,2") from None
        found.setdefault(topic, []).extend(wanted)
    return found
