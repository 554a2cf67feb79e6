"""The blocking client of a whole cluster: finds the broker for each request, retries if it moved.

Spark's workers have no event loop. Code without I/O is shared with `penstock.client`.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import count
from time import monotonic, sleep
from types import TracebackType
from typing import Self, TypeVar

from penstock.client.address import Address
from penstock.client.backoff import backoff_ms
from penstock.client.cluster_cache import ClusterCache
from penstock.client.errors import ALWAYS_RETRIABLE, BrokerRefused, ConnectionFailed
from penstock.client.find_coordinator import coordinator_address, find_coordinator_request
from penstock.client.metadata import (
    ClusterMetadata,
    TopicMetadata,
    cluster_of,
    metadata_request,
    topic_of,
)
from penstock.client.route import ANY, BrokerRole, Route, ToBroker, ToCoordinator, ToLeader
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.client.connection import BlockingConnection, connect
from penstock.spark.client.settings import ClientSettings
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.find_coordinator import FindCoordinatorResponse
from penstock.wire.messages.metadata import MetadataResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class BlockingClient:
    """`with BlockingClient(settings) as client: client.call(...)`; used by one thread at a time.

    Opens one connection per broker, when first needed. Caches leaders and coordinators until a
    response shows that one of them has moved.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._known = ClusterCache(settings.bootstrap)
        self._connections: dict[Address, BlockingConnection] = {}
        self._closed = False

    def call(
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

        def attempt() -> R:
            response = self.connection(to).call(request, response_type)
            check(response)
            return response

        return self.retrying(attempt, retry_on=retry_on, timeout_ms=timeout_ms)

    def retrying(
        self,
        attempt: Callable[[], T],
        *,
        retry_on: frozenset[ErrorCode] = ALWAYS_RETRIABLE,
        timeout_ms: int | None = None,
    ) -> T:
        """Repeat `attempt` until it succeeds; after the timeout, raise its latest error.

        A running attempt is not interrupted: each of its requests has a timeout of its own.
        """
        limit_ms = self.settings.timeout_ms if timeout_ms is None else timeout_ms
        deadline = monotonic() + limit_ms / 1000
        for failures in count(1):
            try:
                return attempt()
            except KafkaError as error:
                if error.code not in retry_on or self._closed:
                    raise
                wait_s = backoff_ms(failures, random.random()) / 1000  # noqa: S311  only spreads load
                if monotonic() + wait_s >= deadline:
                    raise
            self.forget()
            sleep(wait_s)
        raise AssertionError("`count` never ends")

    def forget(self) -> None:
        """Drop cached leaders, coordinators and controller, since something has moved."""
        self._known.forget()

    def connection(self, to: Route) -> BlockingConnection:
        """A connection to the broker that the route means, as far as is known now."""
        match to:
            case BrokerRole.ANY:
                return self._any()
            case BrokerRole.CONTROLLER:
                return self._controller()
            case ToBroker(broker):
                return self._broker(broker)
            case ToLeader(partition):
                return self._broker(self.topic(partition.topic).leader(partition.partition))
            case ToCoordinator():
                return self._coordinator(to)

    def topic(self, name: str, *, create: bool = False) -> TopicMetadata:
        """A topic from the cache, else from a broker; `create` lets the broker create it."""
        if name not in self._known.topics:
            self.topics([name], create=create)
        return self._known.topics[name]

    def topics(self, names: Iterable[str] | None, *, create: bool = False) -> list[TopicMetadata]:
        """The current state of topics, by one request; None means all."""
        response = self.metadata(names, create=create)
        found = [topic_of(each) for each in response.topics]
        self._known.add(found)
        return found

    def existing(self, names: Iterable[str] | None) -> dict[str, TopicMetadata]:
        """The current state of the topics that exist, by name; None means all."""
        response = self.metadata(names)
        found = [
            topic_of(each)
            for each in response.topics
            if each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ]
        self._known.add(found)
        return {topic.name: topic for topic in found}

    def cluster(self) -> ClusterMetadata:
        """The current brokers and controller."""
        return cluster_of(self.metadata([]))

    def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[BrokerId, list[TopicPartition]]:
        """The partitions grouped by their leader."""
        wanted = list(partitions)
        missing = {each.topic for each in wanted} - self._known.topics.keys()
        if missing:
            self.topics(sorted(missing))
        led = defaultdict(list)
        for each in wanted:
            led[self.topic(each.topic).leader(each.partition)].append(each)
        return dict(led)

    def close(self) -> None:
        """Close every connection; a thread that waits for a response fails at once."""
        self._closed = True
        for connection in list(self._connections.values()):
            connection.close()
        self._connections.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def metadata(self, names: Iterable[str] | None, *, create: bool = False) -> MetadataResponse:
        """The Metadata response; the caller checks the errors of its topics."""
        response = self._any().call(metadata_request(names, create=create), MetadataResponse)
        self._known.update(response)
        return response

    def _any(self) -> BlockingConnection:
        """An idle open connection, or a new one to the first broker that accepts it."""
        for connection in self._connections.values():
            if connection.is_open and not connection.unanswered:
                return connection
        failures = []
        for address in self._known.addresses():
            try:
                return self._open(address)
            except ConnectionFailed as error:
                failures.append(str(error))
        raise ConnectionFailed("; ".join(failures) or "no bootstrap address was given")

    def _controller(self) -> BlockingConnection:
        if self._known.controller is None:
            self.cluster()
        controller = self._known.controller
        if controller is None:
            raise BrokerRefused(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return self._broker(controller)

    def _broker(self, broker: BrokerId) -> BlockingConnection:
        if self._known.address(broker) is None:
            self.cluster()
        address = self._known.address(broker)
        if address is None:
            raise ConnectionFailed(f"broker {broker} is not in the cluster now")
        return self._open(address)

    def _coordinator(self, to: ToCoordinator) -> BlockingConnection:
        if to not in self._known.coordinators:
            response = self._any().call(find_coordinator_request(to), FindCoordinatorResponse)
            self._known.coordinators[to] = coordinator_address(to, response)
        return self._open(self._known.coordinators[to])

    def _open(self, address: Address) -> BlockingConnection:
        known = self._connections.get(address)
        if known is not None and known.is_open:
            return known
        self._check_open()
        opened = self._connections[address] = connect(address, self.settings)
        try:
            self._check_open()
        except ConnectionFailed:  # closed by another thread, which did not see this connection
            opened.close()
            raise
        return opened

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectionFailed("the client was closed")
