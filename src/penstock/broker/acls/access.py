"""Authorizes the requests of clients, and logs the decisions as Kafka does."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

from penstock.security.acl import CLUSTER_NAME, AclOperation, ResourcePattern, ResourceType
from penstock.security.acls import Acls
from penstock.security.principal import Principal

logger = logging.getLogger("penstock.authorizer")

MOST_WARNINGS = 1000
MOST_REFUSALS = 1000
"""Refusals logged per request. A client without permissions may name very many resources: a line
for each would delay others, and fill the disk.
"""


# Constants: an enum member or module attribute costs a lookup by name.
TOPIC: Final = ResourceType.TOPIC
GROUP: Final = ResourceType.GROUP
DEBUG: Final = logging.DEBUG

MOST_CHARS = 1000
"""Characters of a name that are logged. No topic name is as long, but a request may name 32,767."""


class Refusals:
    """The number of refused resources of a request."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


_of_pieces: ContextVar[Refusals | None] = ContextVar("refusals of all pieces", default=None)


@contextmanager
def counted_together() -> Iterator[None]:
    """Count all refusals inside as those of one request, even if it is checked in pieces."""
    token = _of_pieces.set(Refusals())
    try:
        yield
    finally:
        _of_pieces.reset(token)


class AuthenticatedClient(Protocol):
    """The principal of a request, and its host."""

    @property
    def principal(self) -> Principal: ...

    @property
    def host(self) -> str: ...


class Access:
    """The permissions of one client during one request."""

    __slots__ = ("_acls", "_client", "_refusals", "_refused_brokers", "_request")

    def __init__(
        self,
        acls: Acls,
        client: AuthenticatedClient,
        request: str,
        refused_brokers: set[tuple[str, ...]],
    ) -> None:
        self._acls, self._client, self._request = acls, client, request
        self._refused_brokers = refused_brokers
        self._refusals: Refusals | None = None

    def may(
        self, operation: AclOperation, kind: ResourceType, name: str, *, logs: bool = True
    ) -> bool:
        """`logs`: the client named the resource, so a refusal is worth a log line."""
        client = self._client
        allowed = self._acls.allows(client.principal, client.host, operation, kind, name)
        if allowed:
            if logger.isEnabledFor(DEBUG):
                self._log(DEBUG, "Allowed", operation, kind, name)
        elif logs:
            self._log_refusal(operation, kind, name)
            if operation is AclOperation.CLUSTER_ACTION:
                self._warn_of_broker()
        return allowed

    def topic(self, operation: AclOperation, name: str, *, logs: bool = True) -> bool:
        return self.may(operation, TOPIC, name, logs=logs)

    def group(self, operation: AclOperation, name: str, *, logs: bool = True) -> bool:
        return self.may(operation, GROUP, name, logs=logs)

    def transaction(self, operation: AclOperation, name: str, *, logs: bool = True) -> bool:
        return self.may(operation, ResourceType.TRANSACTIONAL_ID, name, logs=logs)

    def cluster(self, operation: AclOperation, *, logs: bool = True) -> bool:
        return self.may(operation, ResourceType.CLUSTER, CLUSTER_NAME, logs=logs)

    def may_write_some_topic(self) -> bool:
        client = self._client
        return self._acls.allows_any(
            client.principal, client.host, AclOperation.WRITE, ResourceType.TOPIC
        )

    def operations(self, kind: ResourceType, name: str) -> int:
        """The allowed operations on a resource, as bits."""
        client = self._client
        found = self._acls.operations(client.principal, client.host, kind, name)
        return sum(1 << each for each in found)

    def _warn_of_broker(self) -> None:
        """Warn once of a refused broker: only brokers need this operation, and a cluster whose
        brokers are refused stops working. Once, because brokers retry for ever.
        """
        client = self._client
        broker = (str(client.principal), client.host, self._request)
        if broker not in self._refused_brokers and len(self._refused_brokers) < MOST_WARNINGS:
            self._refused_brokers.add(broker)
            logger.warning(
                "%s from %s is refused %s, which brokers send each other: if it is a broker, add "
                "its principal to super.users, or allow it ClusterAction on the cluster",
                *broker,
            )

    def _log_refusal(self, operation: AclOperation, kind: ResourceType, name: str) -> None:
        if self._refusals is None:
            self._refusals = _of_pieces.get() or Refusals()
        self._refusals.count += 1
        if self._refusals.count <= MOST_REFUSALS:
            self._log(logging.INFO, "Denied", operation, kind, name)
        elif self._refusals.count == MOST_REFUSALS + 1:
            logger.info(
                "Principal = %s from host = %s is Denied more than %d resources for request = %s; "
                "the others are not logged",
                self._client.principal,
                self._client.host,
                MOST_REFUSALS,
                self._request,
            )

    def _log(
        self, level: int, verdict: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> None:
        logger.log(
            level,
            "Principal = %s is %s operation = %s from host = %s on resource = %s for request = %s",
            self._client.principal,
            verdict,
            operation.name,
            self._client.host,
            ResourcePattern(kind, name[:MOST_CHARS]),
            self._request,
        )
