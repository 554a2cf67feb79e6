"""Messages between the owner of a store and its sessions, in msgpack.

A session sends `Hello` first. Its requests are then answered in order, so they need no numbers;
`Changed` and `Alive` come in between. `Alive` is sent both ways.
"""

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from penstock.errors import StorageError
from penstock.metadata import errors
from penstock.metadata.errors import StoreError
from penstock.metadata.store import Answer, Change, Node, Operation


class Hello(msgspec.Struct, frozen=True, tag=True):
    """Opens a session, or resumes the one with this id."""

    session_id: int
    name: str
    """The name of the process. A new session ends those of former processes with this name."""
    timeout_ms: int
    watched: tuple[Change, ...] = ()


class Read(msgspec.Struct, frozen=True, tag=True):
    """Requests the nodes at these paths, or their children."""

    paths: tuple[str, ...]
    children: bool = False


class Write(msgspec.Struct, frozen=True, tag=True):
    """Requests some multis."""

    multis: tuple[tuple[Operation, ...], ...]


class Watch(msgspec.Struct, frozen=True, tag=True):
    """Requests notifications of changes."""

    keys: tuple[Change, ...]


class Unwatch(msgspec.Struct, frozen=True, tag=True):
    """Ends watches. Not answered."""

    keys: tuple[Change, ...]


class Alive(msgspec.Struct, frozen=True, tag=True):
    """Keeps a session; answered with itself."""


class Bye(msgspec.Struct, frozen=True, tag=True):
    """Ends the session."""


class Refused(msgspec.Struct, frozen=True, tag=True):
    """A `StoreError`, a `StorageError` of the owner's disk, or a `ValueError`."""

    kind: str
    text: str
    """The path of a `StoreError`."""
    index: int | None = None

    @classmethod
    def of(cls, error: Exception) -> "Refused":
        if isinstance(error, StoreError):
            return cls(type(error).__name__, error.path, error.index)
        return cls(type(error).__name__, str(error))

    def error(self) -> Exception:
        if self.kind in STORE_ERRORS:
            return STORE_ERRORS[self.kind](self.text, self.index)
        return ValueError(self.text) if self.kind == "ValueError" else StorageError(self.text)


class Welcome(msgspec.Struct, frozen=True, tag=True):
    """Answers `Hello`. Another id than the requested one means that that session has expired."""

    session_id: int


class Nodes(msgspec.Struct, frozen=True, tag=True):
    """The requested nodes that exist."""

    nodes: tuple[Node, ...]


class Children(msgspec.Struct, frozen=True, tag=True):
    """The names of children by the path of their parent."""

    names: dict[str, list[str]]


class Results(msgspec.Struct, frozen=True, tag=True):
    """Answers `Write`: each multi's answers, or its error."""

    multis: tuple[list[Answer] | Refused, ...]


class Done(msgspec.Struct, frozen=True, tag=True):
    """Answers `Watch` and `Bye`."""


class Changed(msgspec.Struct, frozen=True, tag=True):
    """Watched nodes have changed. Not an answer."""

    keys: tuple[Change, ...]


Request: TypeAlias = Hello | Read | Write | Watch | Unwatch | Alive | Bye
Response: TypeAlias = Welcome | Nodes | Children | Results | Done | Refused | Changed | Alive

STORE_ERRORS: dict[str, type[StoreError]] = {
    each.__name__: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, StoreError)
}

encode = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder[Request](Request).decode
decode_response = msgspec.msgpack.Decoder[Response](Response).decode


def results(answers: Sequence[list[Answer] | StoreError]) -> Results:
    return Results(
        tuple(Refused.of(each) if isinstance(each, StoreError) else each for each in answers)
    )
