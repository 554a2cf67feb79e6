"""Commits that were refused because their sender is not, or not any more, a member of its group."""

from collections import OrderedDict

import msgspec

from penstock.errors import ErrorCode

FENCED = frozenset(
    {
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)
GROUPS, EACH = 1000, 10


class RefusedCommit(msgspec.Struct, frozen=True):
    """The last refusal of a client's commits, and how many there were."""

    client_id: str
    error: str
    count: int
    last_ms: int
    """Wall time."""


class RefusedCommits:
    """The refused commits of the last `GROUPS` groups, for the last `EACH` clients of each group.

    In memory only.
    """

    def __init__(self) -> None:
        self._by_group: OrderedDict[str, OrderedDict[str, RefusedCommit]] = OrderedDict()

    def add(self, group: str, client_id: str, code: ErrorCode, now_ms: int) -> None:
        if code not in FENCED:
            return
        known = self._by_group.setdefault(group, OrderedDict())
        count = known[client_id].count + 1 if client_id in known else 1
        known[client_id] = RefusedCommit(client_id, code.name, count, now_ms)
        known.move_to_end(client_id)
        self._by_group.move_to_end(group)
        if len(known) > EACH:
            known.popitem(last=False)
        if len(self._by_group) > GROUPS:
            self._by_group.popitem(last=False)

    def of(self, group: str) -> tuple[RefusedCommit, ...]:
        """Oldest first."""
        return tuple(self._by_group.get(group, {}).values())
