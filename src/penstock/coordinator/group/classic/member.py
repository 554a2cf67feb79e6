"""A member of a classic group."""

import msgspec

from penstock.coordinator.result import PendingReply


class ProtocolMetadata(msgspec.Struct, frozen=True, gc=False):
    """An assignment strategy that a member supports, and its subscription for that strategy."""

    name: str
    metadata: bytes


class Joined(msgspec.Struct, frozen=True):
    """The reply to a join. Only the leader gets the members, to assign partitions to them."""

    member_id: str
    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: tuple["ClassicGroupMember", ...] = ()
    skip_assignment: bool = False


class Synced(msgspec.Struct, frozen=True):
    """The reply to a sync: the member's assignment."""

    protocol_type: str | None
    protocol: str | None
    assignment: bytes


class ClassicGroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """Times are in steady milliseconds. A static member has an instance id, which it keeps."""

    id: str
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[ProtocolMetadata, ...]
    """In order of preference."""
    assignment: bytes = b""
    deadline_ms: int = 0
    """The end of its session, unless a request renews it or the member awaits a reply."""
    is_new: bool = False
    """The member does not know its first generation yet, so it cannot send heartbeats."""
    awaiting_join: PendingReply[Joined] | None = None
    awaiting_sync: PendingReply[Synced] | None = None

    def metadata(self, protocol: str | None) -> bytes:
        return next((each.metadata for each in self.protocols if each.name == protocol), b"")

    def renewed(self, now_ms: int) -> "ClassicGroupMember":
        """The member with a new session."""
        return msgspec.structs.replace(self, deadline_ms=now_ms + self.session_timeout_ms)

    def is_late(self, now_ms: int) -> bool:
        """Whether its session has ended.

        A member that awaits a reply need not send heartbeats. A new one times out even so: its
        connection may be gone, and it would retry under another id.
        """
        waits = self.awaiting_join is not None or self.awaiting_sync is not None
        return self.deadline_ms <= now_ms and (self.is_new or not waits)
