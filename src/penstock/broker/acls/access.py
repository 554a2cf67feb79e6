"""Decides about the requests of clients, and logs the decisions as Kafka does."""

import logging
from typing import Protocol

from penstock.security.acl import CLUSTER_NAME, AclOperation, Acls, ResourcePattern, ResourceType
from penstock.security.principal import Principal

logger = logging.getLogger("penstock.authorizer")


class AuthenticatedClient(Protocol):
    """Who asks, and from where."""

    @property
    def principal(self) -> Principal: ...

    @property
    def host(self) -> str: ...


class Access:
    """What one client may do now, in one request."""

    __slots__ = ("_acls", "_client", "_request")

    def __init__(self, acls: Acls, client: AuthenticatedClient, request: str) -> None:
        self._acls, self._client, self._request = acls, client, request

    def may(
        self, operation: AclOperation, kind: ResourceType, name: str, *, logs: bool = True
    ) -> bool:
        """`logs`: the resource was asked for by name, so that a refusal is worth a line."""
        client = self._client
        allowed = self._acls.allows(client.principal, client.host, operation, kind, name)
        if logs and not allowed:
            self._log(logging.INFO, "Denied", operation, kind, name)
        elif allowed and logger.isEnabledFor(logging.DEBUG):
            self._log(logging.DEBUG, "Allowed", operation, kind, name)
        return allowed

    def topic(self, operation: AclOperation, name: str, *, logs: bool = True) -> bool:
        return self.may(operation, ResourceType.TOPIC, name, logs=logs)

    def group(self, operation: AclOperation, name: str, *, logs: bool = True) -> bool:
        return self.may(operation, ResourceType.GROUP, name, logs=logs)

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
            ResourcePattern(kind, name),
            self._request,
        )
