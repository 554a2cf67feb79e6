"""Why the metadata store refuses. Callers catch these; a client sees one only if nobody did."""

from penstock.errors import ErrorCode, KafkaError


class StoreError(KafkaError):
    """A refused operation: `path` is the node meant, `index` its place if it was in a multi."""

    says = "refused"

    def __init__(self, path: str, index: int | None = None) -> None:
        where = "" if index is None else f" (operation {index} of a multi)"
        super().__init__(f"{path}: {self.says}{where}")
        self.path, self.index = path, index

    def at(self, index: int) -> "StoreError":
        """The same refusal, as that of the multi's operation at `index`."""
        return type(self)(self.path, index)


class NoNode(StoreError):
    """Also when a node is to be created under a parent that is not there."""

    says = "no such node"


class NodeExists(StoreError):
    """Somebody else was first."""

    says = "exists already"


class BadVersion(StoreError):
    """The node was set since it was read."""

    says = "is at another version"


class NotEmpty(StoreError):
    """A node with children cannot be deleted."""

    says = "has children"


class EphemeralParent(StoreError):
    """Ephemeral nodes have no children."""

    says = "is to be under an ephemeral node"


class AccessDenied(StoreError):
    """The node's access list keeps this broker out."""

    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    says = "the metadata store does not permit this"


class DataTooLarge(StoreError):
    """More than the store takes in one operation or multi; nothing was sent."""

    code = ErrorCode.INVALID_REQUEST
    says = "is to hold more than the metadata store takes (1 MB)"


class StoreUnavailable(StoreError):
    """The family of those that come and go with the connection. Once the session is CONNECTED
    again, read anew and decide again.
    """

    code = ErrorCode.REQUEST_TIMED_OUT
    says = "the metadata store cannot be reached"


class NotConnected(StoreUnavailable):
    """The operation did not take place: there was no connection to send it over."""

    says = "no connection to the metadata store, nothing was sent"


class ConnectionLost(StoreUnavailable):
    """Nobody knows whether the operation took place; read before trying again."""

    says = "lost the connection to the metadata store"


class SessionExpired(StoreUnavailable):
    """The session has ended; the operation did not take place in it."""

    says = "the session with the metadata store has ended"
