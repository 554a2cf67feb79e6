"""Errors of the metadata store. Callers handle them; a client sees one only if none did."""

from penstock.errors import ErrorCode, KafkaError


class StoreError(KafkaError):
    """A refused operation on the node at `path`; `index` is its position in a multi."""

    says = "refused"

    def __init__(self, path: str, index: int | None = None) -> None:
        position = "" if index is None else f" (operation {index} of a multi)"
        super().__init__(f"{path}: {self.says}{position}")
        self.path, self.index = path, index

    def at(self, index: int) -> "StoreError":
        """The same error for the operation at `index` of a multi."""
        return type(self)(self.path, index)


class NoNode(StoreError):
    """The node, or the parent of a node to create, does not exist."""

    says = "no such node"


class NodeExists(StoreError):
    """The node to create exists already."""

    says = "exists already"


class BadVersion(StoreError):
    """The node has changed since it was read."""

    says = "is at another version"


class NotEmpty(StoreError):
    """A node with children cannot be deleted."""

    says = "has children"


class EphemeralParent(StoreError):
    """Ephemeral nodes have no children."""

    says = "cannot be created under an ephemeral node"


class AccessDenied(StoreError):
    """The node's access control list does not permit this."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    says = "the metadata store does not permit this"


class DataTooLarge(StoreError):
    """More than the store accepts in one operation or multi; nothing was sent."""

    code = ErrorCode.INVALID_REQUEST
    says = "has more data than the metadata store accepts (1 MB)"


class StoreUnavailable(StoreError):
    """The connection is down. Once the session is CONNECTED again, read again and decide again."""

    code = ErrorCode.REQUEST_TIMED_OUT
    says = "the metadata store cannot be reached"


class NotConnected(StoreUnavailable):
    """There was no connection; the operation did not take place."""

    says = "no connection to the metadata store, nothing was sent"


class ConnectionLost(StoreUnavailable):
    """It is unknown whether the operation took place; read before trying again."""

    says = "lost the connection to the metadata store"


class SessionExpired(StoreUnavailable):
    """The session has ended; the operation did not take place in it."""

    says = "the session with the metadata store has ended"
