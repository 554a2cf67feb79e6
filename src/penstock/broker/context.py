"""The context of a request, and the parts of the broker that handlers may use."""

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
from penstock.wire.frame import RequestHeader
from penstock.wire.messages.metadata import MetadataResponseTopic
from penstock.wire.schema import Message


class Peer(msgspec.Struct):
    """The client at the other end of a connection."""

    listener: str
    host: str
    port: int
    principal: Principal = ANONYMOUS
    """The authenticated user."""
    by_token: bool = False
    """Whether it logged in by a delegation token."""
    software_name: str = ""
    """From its last ApiVersions request (KIP-511)."""
    software_version: str = ""
    connection: int = msgspec.field(default_factory=count(1).__next__)
    """Later connections have larger numbers."""
    is_connected: bool = True
    """False once the connection is closed: its last request may still be handled."""

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
        """Whether the API is served on that listener; inter-broker APIs are for brokers only."""
        if not APIS[key].inter_broker:
            return key in self.served
        return self.clustered and listener == self.inter_broker_listener


class Control(msgspec.Struct, frozen=True):
    """The controller, and the links to it and from it."""

    controller: Controller
    """Active on one broker of the cluster; always on a single node."""
    link: ControllerLink
    """Calls the active controller, wherever it is."""
    control_plane: ControlPlane
    """Carries out the controller's requests."""


class Coordination(msgspec.Struct, frozen=True):
    """The group and transaction coordinators, and what transactions need on every broker."""

    groups: GroupCoordinator
    transactions: TransactionCoordinator
    verifier: TransactionVerifier
    markers: MarkerLogs
    producer_ids: ProducerIdPool


class ShareGroups(msgspec.Struct, frozen=True):
    """Share groups: the share-partitions led here, and the coordinator of their state."""

    coordinator: ShareCoordinator
    persister: Persister
    """Calls the share coordinator, on whichever broker it is."""
    partitions: SharePartitions
    dead_letters: DeadLetterWriter
    groups: WeakValueDictionary[str, asyncio.Lock]
    """A lock by group, so that one request at a time initializes state of its partitions."""


class Replicas(msgspec.Struct, frozen=True):
    """The replicas on this broker."""

    partitions: Partitions
    log_dir_moves: LogDirMoves
    leader_throttle: LeaderThrottle


class Resources(msgspec.Struct, frozen=True):
    """Machine resources that requests share."""

    clock: Clock
    """For requests that have waited: `Context.now_ms` is the time at which handling began."""
    chance: Random
    """The machine's randomness, for ids that the broker creates."""
    worker: Executor
    """A single thread for work that would block the loop; one job at a time, so that only one large
    batch is decompressed in memory.
    """
    checker: Executor
    """A single thread that checks batches which decompress slowly, but not to much: they need not
    wait for the jobs of `worker`.
    """
    scratch: bytearray
    """A buffer to decompress into; free again when the handler returns."""
    file_shares: FileShares


CheckStores: TypeAlias = Callable[[Mapping[str, str]], Coroutine[Any, Any, None]]
"""Raises `ConfigError` if these altered settings name keys that a listener cannot use."""


async def any_stores(_: Mapping[str, str]) -> None:
    """Accept all settings: this broker has no TLS."""


class Services(msgspec.Struct, frozen=True):
    """The parts of a broker, as the composition root assembled them."""

    broker_id: BrokerId
    cluster: Cluster
    waiters: Waiters
    listeners: Listeners
    control: Control
    coordination: Coordination
    share: ShareGroups
    replicas: Replicas
    resources: Resources
    fetch_sessions: FetchSessions
    delegation_tokens: DelegationTokens
    encoded_topics: dict[tuple[str, int, int], tuple[Topic, MetadataResponseTopic]]
    """Cached parts of Metadata responses, by topic, version and operations."""
    quotas: ClientQuotas
    telemetry: TelemetryClients
    authorizer: Authorizer | None = None
    """None: no ACLs, everything is allowed."""
    check_stores: CheckStores = any_stores

    @property
    def config(self) -> BrokerConfig:
        """The broker's current settings."""
        return self.cluster.config

    def is_broker(self, peer: Peer) -> bool:
        """Whether the peer is a broker, which forwards a client's request.

        The software name is trusted on the inter-broker listener, like a follower's fetch; with
        ACLs the peer also needs ClusterAction.
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
"""Answers a request. A coroutine only off the hot path: the session starts a task for it."""

AsyncHandler: TypeAlias = Callable[[RequestT, Context], Coroutine[Any, Any, ResponseT]]

AnyHandler: TypeAlias = Handler[Any, Message]
"""A handler of any API, for tables of handlers."""
