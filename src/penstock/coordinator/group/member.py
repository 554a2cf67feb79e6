"""A member of a classic group."""

import msgspec

from penstock.coordinator.outcome import Ticket


class ProtocolMetadata(msgspec.Struct, frozen=True, gc=False):
    """An assignment strategy that a member knows, and what it tells the leader under it."""

    name: str
    metadata: bytes


class Joined(msgspec.Struct, frozen=True):
    """A member's place in a new generation; the leader also hears of all the others."""

    member_id: str
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: tuple["Member", ...] = ()
    skip_assignment: bool = False


class Synced(msgspec.Struct, frozen=True):
    """A member's share."""

    protocol_type: str | None
    protocol: str | None
    assignment: bytes


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """Its times are in steady milliseconds. A static member keeps its instance id for good."""

    id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[ProtocolMetadata, ...]
    """In the order of its preference."""
    assignment: bytes = b""
    deadline_ms: int = 0
    """It is taken for dead then, unless it is heard of before or waits for us."""
    is_new: bool = False
    """It has not heard of its first generation yet, so it cannot send heartbeats."""
    join: Ticket[Joined] | None = None
    sync: Ticket[Synced] | None = None

    def metadata(self, protocol: str | None) -> bytes:
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    def heard(self, now_ms: int) -> "Member":
        """It lives: its session begins anew."""
        return msgspec.structs.replace(self, deadline_ms=now_ms + self.session_timeout_ms)

    def is_late(self, now_ms: int) -> bool:
        """A member that waits for the group need not send heartbeats; a new one is given up
        even so, since its connection may be gone and it would retry under another name.
        """
        waits = self.join is not None or self.sync is not None
        return self.deadline_ms <= now_ms and (self.is_new or not waits)
