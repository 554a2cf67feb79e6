"""Translates the store's operations to ZooKeeper's requests, and its answers back. Pure."""

from collections.abc import Callable, Sequence
from typing import Any

from kazoo import exceptions
from kazoo.protocol import serialization as zk
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from penstock.metadata import paths
from penstock.metadata.errors import (
    AccessDenied,
    BadVersion,
    ConnectionLost,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotConnected,
    NotEmpty,
    SessionExpired,
    StoreError,
)
from penstock.metadata.store import (
    Answer,
    Change,
    Check,
    ChildrenChanged,
    Create,
    DataChanged,
    Delete,
    Node,
    Operation,
    Set,
)
from penstock.metadata.zookeeper.session import Request

EPHEMERAL, SEQUENTIAL = 1, 2

MAX_DATA_BYTES = 1_000_000
"""The limit of one request. ZooKeeper (`jute.maxbuffer`) accepts 1,048,575 bytes including paths,
and closes the connection on a larger request: the outcome of all others in flight would be unknown.
"""


SENSITIVE = (
    paths.CONFIG_USERS,
    paths.CONFIG_BROKERS,
    "/delegation_token/tokens",
    paths.SCRAM_SALT_SECRET,
)
"""Paths under which only brokers may read: those of Kafka 3.9, and Penstock's own."""


def protected_acl(path: str) -> list[Any]:
    """The ACL with `zookeeper.set.acl`: all rights for the creator; others read all but
    `SENSITIVE`.
    """
    if path.startswith(SENSITIVE):
        return list(CREATOR_ALL_ACL)
    return [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE]


class NotSent(Exception):
    """There was no connection to send the request over."""


_ERRORS: dict[type[Exception], type[StoreError]] = {
    NotSent: NotConnected,
    exceptions.ConnectionLoss: ConnectionLost,
    exceptions.ConnectionClosedError: ConnectionLost,
    exceptions.SessionExpiredError: SessionExpired,
    exceptions.NoNodeError: NoNode,
    exceptions.NodeExistsError: NodeExists,
    exceptions.BadVersionError: BadVersion,
    exceptions.NotEmptyError: NotEmpty,
    exceptions.NoChildrenForEphemeralsError: EphemeralParent,
    exceptions.NoAuthError: AccessDenied,
}

_OF_OTHERS = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
"""The results of the other operations of a failed multi."""


def store_error(error: Exception, path: str) -> StoreError:
    return _ERRORS.get(type(error), StoreError)(path)


def is_too_large(operations: Sequence[Operation]) -> bool:
    sizes = [len(each.data or b"") for each in operations if isinstance(each, Create | Set)]
    return sum(sizes) > MAX_DATA_BYTES


class Chroot:
    """Adds the chroot to the paths of requests, and removes it from answers.

    `protects`: only the brokers may change nodes.
    """

    def __init__(self, chroot: str, *, protects: bool = False) -> None:
        self._chroot, self._protects = chroot, protects

    def absolute(self, path: str) -> str:
        return (self._chroot + path).rstrip("/") or "/"

    def relative(self, path: str) -> str:
        return path.removeprefix(self._chroot) or "/"

    def get(self, path: str) -> Request:
        return zk.GetData(self.absolute(path), None)

    def exists(self, path: str) -> Request:
        return zk.Exists(self.absolute(path), None)

    def children(self, path: str) -> Request:
        return zk.GetChildren(self.absolute(path), None)

    def sync(self) -> Request:
        return zk.Sync(self.absolute("/"))

    def watch(self, change: Change, fired: Callable[[Any], None]) -> Request:
        """The cheapest read that sets a watch for this change."""
        match change:
            case DataChanged(path):
                return zk.Exists(self.absolute(path), fired)
            case ChildrenChanged(path):
                return zk.GetChildren(self.absolute(path), fired)

    def write(self, operation: Operation) -> Request:
        match operation:
            case Check(path, version):
                return zk.CheckVersion(self.absolute(path), version)
            case Create(path, data, ephemeral, sequential):
                flags = EPHEMERAL * ephemeral | SEQUENTIAL * sequential
                # The prefix of a sequential node may end in a slash, which must stay.
                whole = self._chroot + path if sequential else self.absolute(path)
                acl = protected_acl(path) if self._protects else OPEN_ACL_UNSAFE
                return zk.Create(whole, data, acl, flags)
            case Set(path, data, version):
                return zk.SetData(self.absolute(path), data, version)
            case Delete(path, version):
                return zk.Delete(self.absolute(path), version)

    def multi(self, operations: Sequence[Operation]) -> Request:
        return zk.Transaction([self.write(each) for each in operations])

    def written(self, operation: Operation, answer: Any) -> Answer:
        match operation:
            case Create():
                return self.relative(answer)
            case Set(path, data):
                return node(path, data, answer)
            case Check() | Delete():
                return None

    def all_written(
        self, operations: Sequence[Operation], answers: Sequence[Any]
    ) -> list[Answer] | StoreError:
        for index, (operation, answer) in enumerate(zip(operations, answers, strict=True)):
            if isinstance(answer, Exception) and not isinstance(answer, _OF_OTHERS):
                return store_error(answer, operation.path).at(index)
        return [
            self.written(operation, answer)
            for operation, answer in zip(operations, answers, strict=True)
        ]


def node(path: str, data: bytes | None, stat: Any) -> Node:
    return Node(path, data, stat.version, stat.czxid, stat.mzxid, stat.ctime, stat.ephemeralOwner)
