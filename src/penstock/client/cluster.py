"""A client of a whole cluster: finds the broker for each request, and retries if it moved."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import count
from types import TracebackType
from typing import Final, Self, TypeVar

from penstock.client.address import Address
from penstock.client.backoff import backoff_ms
from penstock.client.cluster_cache import ClusterCache
from penstock.client.connection import Connection, connect
from penstock.client.errors import (
    ALWAYS_RETRIABLE,
    BrokerRefused,
    ConnectionFailed,
    RequestTimedOut,
    TlsFailed,
)
from penstock.client.find_coordinator import coordinator_address, find_coordinator_request
from penstock.client.metadata import (
    ClusterMetadata,
    TopicMetadata,
    cluster_of,
    metadata_request,
    topic_of,
)
from penstock.client.route import ANY, BrokerRole, Route, ToBroker, ToCoordinator, ToLeader
from penstock.client.security import NO_SECURITY, ClientSecurity
from penstock.errors import ErrorCode, KafkaError
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.find_coordinator import FindCoordinatorResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)
T = TypeVar("T")

NO_SUCH_TOPIC: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE}
)


class Client:
    """`async with Client([Address("127.0.0.1", 9092)]) as client: await client.call(...)`.

    Opens one connection per broker, when first needed; has no task of its own. Caches leaders and
    coordinators until a response shows that one of them has moved.
    """

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str = "penstock",
        security: ClientSecurity = NO_SECURITY,
        timeout_ms: int = 60_000,
        request_timeout_ms: int = 30_000,
        connect_timeout_ms: int = 10_000,
    ) -> None:
        self.timeout_ms, self.request_timeout_ms = timeout_ms, request_timeout_ms
        self._bootstrap = tuple(bootstrap)
        self._known = ClusterCache(bootstrap)
        self._client_id, self._security = client_id, security
        self._connect_timeout_ms = connect_timeout_ms
        self._connections: dict[Address, Connection] = {}
        self._closed = False

    async def call(
        self,
        request: Message,
        response_type: type[R],
        *,
        to: Route = ANY,
        check: Callable[[R], None] = lambda _: None,
        retry_on: frozenset[ErrorCode] = ALWAYS_RETRIABLE,
        timeout_ms: int | None = None,
    ) -> R:
        """The response to a request, from the broker that `to` means.

        `check` raises the response's errors; those with codes in `retry_on` are retried.
        """

        async def attempt() -> R:
            connection = await self.connection(to)
            response = await connection.call(
                request, response_type, timeout_ms=self.request_timeout_ms
            )
            check(response)
            return response

        return await self.retrying(attempt, retry_on=retry_on, timeout_ms=timeout_ms)

    async def retrying(
        self,
        attempt: Callable[[], Awaitable[T]],
        *,
        retry_on: frozenset[ErrorCode] = ALWAYS_RETRIABLE,
        timeout_ms: int | None = None,
    ) -> T:
        """Repeat `attempt` until it succeeds; after the timeout, raise its latest error."""
        limit_ms = self.timeout_ms if timeout_ms is None else timeout_ms
        latest: KafkaError | None = None
        try:
            async with asyncio.timeout(limit_ms / 1000):
                for failures in count(1):
                    try:
                        return await attempt()
                    except KafkaError as error:
                        if error.code not in retry_on:
                            raise
                        latest = error
                    self.forget()
                    wait_ms = backoff_ms(failures, random.random())  # noqa: S311  only spreads load
                    await asyncio.sleep(wait_ms / 1000)
        except TimeoutError:
            raise latest or RequestTimedOut(f"no response within {limit_ms} ms") from None
        raise AssertionError("`count` never ends")

    def forget(self) -> None:
        """Drop cached leaders, coordinators and controller, since something has moved."""
        self._known.forget()

    async def connection(self, to: Route) -> Connection:
        """A connection to the broker that the route means, as far as is known now."""
        found = await self._connection(to)
        await found.renew_login()
        return found

    async def _connection(self, to: Route) -> Connection:
        match to:
            case BrokerRole.ANY:
                return await self._any()
            case BrokerRole.CONTROLLER:
                return await self._controller()
            case ToBroker(broker):
                return await self._broker(broker)
            case ToLeader(partition):
                topic = await self.topic(partition.topic)
                return await self._broker(topic.leader(partition.partition))
            case ToCoordinator():
                return await self._coordinator(to)

    async def topic(self, name: str, *, create: bool = False) -> TopicMetadata:
        """A topic from the cache, else from a broker; `create` lets the broker create it."""
        if name not in self._known.topics:
            await self.topics([name], create=create)
        return self._known.topics[name]

    async def topics(
        self, names: Iterable[str] | None, *, create: bool = False
    ) -> list[TopicMetadata]:
        """The current state of topics, by one request; None means all."""
        response = await self._metadata(metadata_request(names, create=create))
        found = [topic_of(each) for each in response.topics]
        self._known.add(found)
        return found

    async def existing_topics(self, names: Iterable[str] | None) -> list[TopicMetadata]:
        """Like `topics`, without those that do not exist, or not yet."""
        response = await self._metadata(metadata_request(names))
        found = [topic_of(each) for each in response.topics if each.error_code not in NO_SUCH_TOPIC]
        self._known.add(found)
        return found

    async def cluster(self) -> ClusterMetadata:
        """The current brokers and controller."""
        return cluster_of(await self._metadata(metadata_request([])))

    async def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[BrokerId, list[TopicPartition]]:
        """The partitions grouped by their leader."""
        wanted = list(partitions)
        missing = {each.topic for each in wanted} - self._known.topics.keys()
        if missing:
            await self.topics(sorted(missing))
        led = defaultdict(list)
        for each in wanted:
            led[(await self.topic(each.topic)).leader(each.partition)].append(each)
        return dict(led)

    def twin(self) -> "Client":
        """Another client of the same cluster, with its own connections.

        Responses come in the order of requests: a request that may wait long, such as a join, must
        not share a connection with urgent ones.
        """
        return Client(
            self._bootstrap,
            client_id=self._client_id,
            security=self._security,
            timeout_ms=self.timeout_ms,
            request_timeout_ms=self.request_timeout_ms,
            connect_timeout_ms=self._connect_timeout_ms,
        )

    async def close(self) -> None:
        self._closed = True
        connections = list(self._connections.values())
        self._connections.clear()
        try:
            for connection in connections:
                await connection.close()
        except BaseException:  # cancelled: only we know the other connections
            for connection in connections:
                connection.abort()
            raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        connection = await self._any()
        response = await connection.call(
            request, MetadataResponse, timeout_ms=self.request_timeout_ms
        )
        self._known.update(response)
        return response

    async def _any(self) -> Connection:
        """An open connection, or a new one to the first broker that accepts it."""
        for connection in self._connections.values():
            if connection.is_open:
                return connection
        failures = []
        for address in self._known.addresses():
            try:
                return await self._open(address)
            except ConnectionFailed as error:
                failures.append(error)
        if not failures:
            raise ConnectionFailed("no bootstrap address was given")
        is_tls = any(isinstance(each, TlsFailed) for each in failures)
        raise (TlsFailed if is_tls else ConnectionFailed)("; ".join(map(str, failures)))

    async def _controller(self) -> Connection:
        if self._known.controller is None:
            await self.cluster()
        controller = self._known.controller
        if controller is None:
            raise BrokerRefused(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return await self._broker(controller)

    async def _broker(self, broker: BrokerId) -> Connection:
        if self._known.address(broker) is None:
            await self.cluster()
        address = self._known.address(broker)
        if address is None:
            raise ConnectionFailed(f"broker {broker} is not in the cluster now")
        return await self._open(address)

    async def _coordinator(self, to: ToCoordinator) -> Connection:
        if to not in self._known.coordinators:
            connection = await self._any()
            response = await connection.call(
                find_coordinator_request(to),
                FindCoordinatorResponse,
                timeout_ms=self.request_timeout_ms,
            )
            self._known.coordinators[to] = coordinator_address(to, response)
        return await self._open(self._known.coordinators[to])

    async def _open(self, address: Address) -> Connection:
        known = self._connections.get(address)
        if known is not None and known.is_open:
            return known
        assert not self._closed, "the client is closed"
        opened = await connect(
            address,
            client_id=self._client_id,
            tls=self._security.tls,
            login=self._security.login,
            timeout_ms=self._connect_timeout_ms,
        )
        return await self._registered(opened)

    async def _registered(self, opened: Connection) -> Connection:
        """The connection to use: another task may have opened one, or closed the client."""
        faster = self._connections.get(opened.address)
        if faster is not None and faster.is_open:
            await opened.close()
            return faster
        self._connections[opened.address] = opened
        if self._closed:
            await self.close()
        return opened
