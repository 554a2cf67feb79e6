"""A cluster seen from a worker: finds the broker for each request, and asks again if it moved.

The blocking sibling of `penstock.client.cluster`; what is no I/O they share.
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
from penstock.client.errors import ALWAYS_RETRIABLE, BrokerRefused, ConnectionFailed, check
from penstock.client.metadata import ClusterMetadata, TopicMetadata, cluster_of, topic_of
from penstock.client.route import ANY, BrokerRole, Route, ToBroker, ToCoordinator, ToLeader
from penstock.errors import ErrorCode, KafkaError
from penstock.spark.client.connection import Connection, connect
from penstock.spark.client.settings import ClientSettings
from penstock.types import BrokerId, TopicPartition
from penstock.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from penstock.wire.schema import Message

R = TypeVar("R", bound=Message)
T = TypeVar("T")


class Client:
    """`with Client(settings) as client: client.call(...)`; used by one thread at a time.

    One connection per broker, opened when first needed. What it learns of leaders and
    coordinators it keeps until an answer shows that something has moved.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self._seen: list[Address] = []
        """Brokers of the latest metadata, to have whom to ask when all of it is forgotten."""
        self._connections: dict[Address, Connection] = {}
        self._cluster: ClusterMetadata | None = None
        self._topics: dict[str, TopicMetadata] = {}
        self._coordinators: dict[ToCoordinator, Address] = {}
        self._closed = False

    def call(
        self,
        request: Message,
        answer: type[R],
        *,
        to: Route = ANY,
        check: Callable[[R], None] = lambda _: None,
        retry_on: frozenset[ErrorCode] = ALWAYS_RETRIABLE,
        timeout_ms: int | None = None,
    ) -> R:
        """The answer to a request, from whoever can give it.

        `check` raises what the answer's error codes say; codes in `retry_on` are asked again.
        """

        def attempt() -> R:
            response = self.connection(to).call(request, answer)
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
        """What `attempt` gives at last. When time is up, the error that it failed with before.

        An attempt that is under way is not cut off: each of its requests has its own limit.
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
        raise AssertionError("counting has no end")

    def forget(self) -> None:
        """Drop what was learned of leaders, coordinators and controller: something has moved."""
        self._topics.clear()
        self._coordinators.clear()
        self._cluster = None

    def connection(self, to: Route) -> Connection:
        """A connection to whom the route means, as known now."""
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
        """A topic as it was when last asked; `create` lets the broker make it if missing."""
        if name not in self._topics:
            self.topics([name], create=create)
        return self._topics[name]

    def topics(self, names: Iterable[str] | None, *, create: bool = False) -> list[TopicMetadata]:
        """Topics as they are now, asked in one request; None means all."""
        response = self.metadata(names, create=create)
        found = [topic_of(each) for each in response.topics]
        self._topics |= {topic.name: topic for topic in found}
        return found

    def existing(self, names: Iterable[str] | None) -> dict[str, TopicMetadata]:
        """Those of the topics that exist, as they are now; None means all."""
        response = self.metadata(names)
        found = {}
        for each in response.topics:
            if each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                topic = topic_of(each)
                found[topic.name] = topic
        self._topics |= found
        return found

    def cluster(self) -> ClusterMetadata:
        """The brokers and the controller as they are now."""
        return cluster_of(self.metadata([]))

    def by_leader(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[BrokerId, list[TopicPartition]]:
        """Who is to be asked about which of these."""
        wanted = list(partitions)
        missing = {each.topic for each in wanted} - self._topics.keys()
        if missing:
            self.topics(sorted(missing))
        led = defaultdict(list)
        for each in wanted:
            led[self.topic(each.topic).leader(each.partition)].append(each)
        return dict(led)

    def close(self) -> None:
        """Close every connection; a thread that waits for one is told so."""
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
        """One Metadata answer as it came; its topics' errors are the caller's to read."""
        wanted = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=create)
        response = self._any().call(request, MetadataResponse)
        self._cluster = cluster_of(response)
        self._seen = [broker.address for broker in self._cluster.brokers.values()]
        return response

    def _any(self) -> Connection:
        """An open connection, or a new one to the first broker that takes it."""
        for connection in self._connections.values():
            if connection.is_open and not connection.unanswered:
                return connection
        failures = []
        # Brokers seen, in any order; then where we came from, should all have moved.
        seen = random.sample(self._seen, len(self._seen))
        for address in dict.fromkeys((*seen, *self.settings.bootstrap)):
            try:
                return self._open(address)
            except ConnectionFailed as error:
                failures.append(str(error))
        raise ConnectionFailed("; ".join(failures) or "no bootstrap address was given")

    def _controller(self) -> Connection:
        known = self._cluster
        if known is None or known.controller < 0:
            known = self.cluster()
        if known.controller < 0:
            raise BrokerRefused(ErrorCode.NOT_CONTROLLER, "the cluster has no controller now")
        return self._broker(known.controller)

    def _broker(self, broker: BrokerId) -> Connection:
        known = self._cluster
        if known is None or broker not in known.brokers:
            known = self.cluster()
        if broker not in known.brokers:
            raise ConnectionFailed(f"broker {broker} is not in the cluster now")
        return self._open(known.brokers[broker].address)

    def _coordinator(self, to: ToCoordinator) -> Connection:
        if to not in self._coordinators:
            response = self._any().call(
                FindCoordinatorRequest(key=to.key, key_type=to.type, coordinator_keys=[to.key]),
                FindCoordinatorResponse,
            )
            # Up to version 3 the answer is about one key, and is in the response itself.
            found = response.coordinators[0] if response.coordinators else response
            check(found.error_code, f"coordinator of {to.key}", found.error_message)
            self._coordinators[to] = Address(found.host, found.port)
        return self._open(self._coordinators[to])

    def _open(self, address: Address) -> Connection:
        known = self._connections.get(address)
        if known is not None and known.is_open:
            return known
        self._check_open()
        made = self._connections[address] = connect(address, self.settings)
        try:
            self._check_open()
        except ConnectionFailed:  # closed by another thread, which did not see this connection
            made.close()
            raise
        return made

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectionFailed("the client was closed")
