"""What a handler may know of its request, and what it may reach of the broker."""

import msgspec

from penstock.broker.fetch_sessions import FetchSessions
from penstock.broker.waiters import Waiters
from penstock.config.broker import BrokerConfig
from penstock.log.flush import Flusher
from penstock.replication.partitions import Partitions
from penstock.wire.header import RequestHeader


class Peer(msgspec.Struct, frozen=True):
    """Who is at the other end of a connection."""

    listener: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class Services(msgspec.Struct, frozen=True):
    """The parts of a broker, as the composition root put them together."""

    config: BrokerConfig
    partitions: Partitions
    waiters: Waiters
    flusher: Flusher
    fetch_sessions: FetchSessions


class Context(msgspec.Struct, frozen=True, gc=False):
    """One request: its header, its sender, and the time at which it is handled."""

    header: RequestHeader
    peer: Peer
    now_ms: int
    services: Services

    @property
    def version(self) -> int:
        return self.header.version
