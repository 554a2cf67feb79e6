"""Asks the leaders of partitions, as one call that is repeated until all of them have answered."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias, TypeVar

from penstock.client.cluster import Client
from penstock.client.route import ToBroker
from penstock.types import BrokerId, TopicPartition
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)
Wanted = TypeVar("Wanted")
Found = TypeVar("Found")

AskBroker: TypeAlias = Callable[
    [Client, BrokerId, Mapping[TopicPartition, Wanted]], Awaitable[dict[TopicPartition, Found]]
]


async def from_leaders(
    client: Client,
    wanted: Mapping[TopicPartition, Wanted],
    ask: AskBroker[Wanted, Found],
    *,
    timeout_ms: int | None = None,
) -> dict[TopicPartition, Found]:
    """What the leaders answer, by partition; `ask` asks one broker about the partitions it leads.

    A retriable error of one of them repeats all requests, with the leaders looked up again.
    """

    async def attempt() -> dict[TopicPartition, Found]:
        found: dict[TopicPartition, Found] = {}
        for leader, led in (await client.by_leader(wanted)).items():
            found |= await ask(client, leader, {each: wanted[each] for each in led})
        return found

    return await client.retrying(attempt, timeout_ms=timeout_ms)


async def call_broker(
    client: Client, broker: BrokerId, request: Message, response_type: type[R]
) -> R:
    """The response of one broker to one attempt."""
    connection = await client.connection(ToBroker(broker))
    return await connection.call(request, response_type, timeout_ms=client.request_timeout_ms)
