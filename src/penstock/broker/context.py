"""What a handler may know of its request, and what it may reach of the broker."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Executor
from itertools import count
from random import Random
from typing import Any, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import msgspec

from penstock.broker.acls.authorizer import Authorizer
from penstock.broker.cluster import Cluster
from penstock.broker.delegation.tokens import DelegationTokens
from penstock.broker.fetch.sessions import FetchSessions
from penstock.broker.leader_append import LeaderAppend
from penstock.broker.parked import Parked
from penstock.broker.peers.connection import BROKER_SOFTWARE
from penstock.broker.peers.control_plane import ControlPlane
from penstock.broker.peers.controller_link import ControllerLink
from penstock.broker.quotas.client_quotas import ClientQuotas
from penstock.broker.replicas.throttles import LeaderThrottle
from penstock.broker.share.dead_letter_writer import DeadLetterWriter
from penstock.broker.share.persister import Persister
from penstock.broker.share.share_partitions import SharePartitions
from penstock.broker.startup.file_limit import FileShares
from penstock.broker.telemetry.clients import TelemetryClients
from penstock.broker.transaction.markers import MarkerLogs
from penstock.broker.transaction.producer_ids import ProducerIdPool
from penstock.broker.transaction.verifier import TransactionVerifier
from penstock.broker.waiters import Waiters
from penstock.clock import Clock
from penstock.config.broker import BrokerConfig
from penstock.controller.controller import Controller
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.share.coordinator import ShareCoordinator
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.metadata.image import Topic
from penstock.replication.log_dir_moves import LogDirMoves
from penstock.replication.partitions import Partitions
from penstock.security.acl import AclOperation
from penstock.security.principal import ANONYMOUS, Principal
from penstock.types import BrokerId
from penstock.wire.apis import APIS
from penstock.wire.header import RequestHeader
from penstock.wire.messages.metadata import MetadataResponseTopic
from penstock.wire.schema import Message


class Peer(msgspec.Struct):
    """The client at the other end of a connection."""

    listener: str
    host: str
    port: int
    principal: Principal = ANONYMOUS
    """Whom the connection has proved to be."""
    by_token: bool = False
    """Whether it logged in by a delegation token."""
    software_name: str = ""
    """As its last ApiVersions request said (KIP-511)."""
    software_version: str = ""
    connection: int = msgspec.field(default_factory=count(1).__next__)
    """Later connections have larger numbers."""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Listeners(msgspec.Struct, frozen=True):
    """Which APIs are served, and on which listener."""

    served: frozenset[int]
    """Keys of the APIs that have a handler."""
    clustered: bool
    """Whether other brokers may connect to this one."""
    inter_broker_listener: str
    """Requests on this listener may act as brokers."""

    def serves(self, key: int, listener: str) -> bool:
        """Whether the API is served on that listener; inter-broker APIs only among brokers."""
        if not APIS[key].inter_broker:
            return key in self.served
        return self.clustered and listener == self.inter_broker_listener


class Control(msgspec.Struct, frozen=True):
    """The controller, and the ways to it and from it."""

    controller: Controller
    """Active on one broker of the cluster; always on a single node."""
    link: ControllerLink
    """Calls the active controller, wherever it is."""
    control_plane: ControlPlane
    """Carries out the controller's requests."""


class Coordination(msgspec.Struct, frozen=True):
    """The coordinators of groups and transactions, and what transactions need of every broker."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verifier: TransactionVerifier
    markers: MarkerLogs
    producer_ids: ProducerIdPool


class Share(msgspec.Struct, frozen=True):
    """Share groups: the partitions that are led here, and the coordinator of their state."""

    coordinator: ShareCoordinator
    persister: Persister
    """Asks the coordinator, wherever it is."""
    partitions: SharePartitions
    dead_letters: DeadLetterWriter
    groups: WeakValueDictionary[str, asyncio.Lock]
    """Held while partitions of a group get their state, one request at a time."""


class Replicas(msgspec.Struct, frozen=True):
    """The replicas on this broker."""

    partitions: Partitions
    leader_append: LeaderAppend
    log_dir_moves: LogDirMoves
    leader_throttle: LeaderThrottle


class Resources(msgspec.Struct, frozen=True):
    """What requests share of the machine."""

    clock: Clock
    """For a request that has waited: its context says when it came."""
    chance: Random
    """The machine's randomness, for ids that the broker hands out."""
    worker: Executor
    """A thread for what would hold up the loop: it does one thing after the other, so that one
    large batch at a time is in memory.
    """
    scratch: bytearray
    """Buffer for a handler to decompress into; free again when the handler returns."""
    file_shares: FileShares


CheckStores: TypeAlias = Callable[[Mapping[str, str]], Coroutine[Any, Any, None]]
"""Raises `ConfigError` if these altered settings name keys that a listener cannot use."""


async def any_stores(_: Mapping[str, str]) -> None:
    """Of a broker without TLS."""


class Services(msgspec.Struct, frozen=True):
    """The parts of a broker, as the composition root put them together."""

    broker_id: BrokerId
    cluster: Cluster
    waiters: Waiters
    listeners: Listeners
    control: Control
    coordination: Coordination
    share: Share
    replicas: Replicas
    resources: Resources
    fetch_sessions: FetchSessions
    delegation_tokens: DelegationTokens
    encoded_topics: dict[tuple[str, int, int], tuple[Topic, MetadataResponseTopic]]
    """Cached parts of Metadata responses, by topic, version and operations."""
    quotas: ClientQuotas
    telemetry: TelemetryClients
    authorizer: Authorizer | None = None
    """None: everyone may do everything."""
    check_stores: CheckStores = any_stores

    @property
    def config(self) -> BrokerConfig:
        """The broker's current settings."""
        return self.cluster.config

    def is_broker(self, peer: Peer) -> bool:
        """Whether a broker is at the other end, which forwards a client's request.

        Believed where brokers connect, as a follower's fetch is; with ACLs, if it may act as one.
        """
        listeners = self.listeners
        if (
            peer.software_name != BROKER_SOFTWARE
            or not listeners.clustered
            or peer.listener != listeners.inter_broker_listener
        ):
            return False
        access = None if self.authorizer is None else self.authorizer.access(peer, "forwarding")
        return access is None or access.cluster(AclOperation.CLUSTER_ACTION)


class Context(msgspec.Struct, frozen=True, gc=False):
    """One request: its header, its sender, and the time at which it is handled."""

    header: RequestHeader
    version: int
    peer: Peer
    now_ms: int
    services: Services


RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

Reply: TypeAlias = ResponseT | Parked[ResponseT] | None
"""A response, one that comes later, or none (`acks=0`)."""

Handler: TypeAlias = Callable[
    [RequestT, Context], Reply[ResponseT] | Coroutine[Any, Any, Reply[ResponseT]]
]
"""Answers a request. A coroutine on the cold path only: the session starts a task for it."""

AsyncHandler: TypeAlias = Callable[[RequestT, Context], Coroutine[Any, Any, ResponseT]]

AnyHandler: TypeAlias = Handler[Any, Message]
"""One of the table, in which each API has its own request and response."""
