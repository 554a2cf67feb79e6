"""Selects groups and partitions from options: `--all-groups`, `--topic t` or `--topic t:0,2`."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.kafka_tools.parser import Arguments, UsageError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.groups import GroupListing


async def consumer_groups(client: "Client") -> "list[GroupListing]":
    """Groups of Kafka's consumers. Share, streams and Connect groups have their own tools, and
    `--delete --all-groups` must not affect them.
    """
    from penstock.client.groups import list_groups  # late: `--help` needs no client

    return [
        each
        for each in await list_groups(client)
        if each.protocol_type in {"consumer", ""}
        and each.type.lower() in {"classic", "consumer", ""}
    ]


async def named_groups(args: Arguments, client: "Client") -> list[str]:
    """The groups of `--group`, without duplicates, or all with `--all-groups`."""
    if args.has("all-groups"):
        return [each.id for each in await consumer_groups(client)]
    return list(dict.fromkeys(args.all("group")))


def topic_scope(given: Iterable[str]) -> dict[str, list[int]]:
    """Partition indexes by topic; an empty list means all partitions."""
    found: dict[str, list[int]] = {}
    for text in given:
        topic, colon, indexes = text.partition(":")
        try:
            wanted = [int(each) for each in indexes.split(",")] if colon else []
        except ValueError:
            raise UsageError(f"--topic {text}: partitions must be like {topic}:0,2") from None
        found.setdefault(topic, []).extend(wanted)
    return found
