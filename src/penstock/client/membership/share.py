"""Membership of a share group (KIP-932): only heartbeats; the coordinator assigns. No I/O."""

from collections.abc import Iterable
from typing import Final

from penstock.client.errors import ALWAYS_RETRIABLE, check
from penstock.errors import ErrorCode
from penstock.wire.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

JOINING: Final = 0
LEAVING: Final = -1
_FORGOTTEN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
RETRY_ON: Final = ALWAYS_RETRIABLE | _FORGOTTEN
"""Errors of a heartbeat after which the next one may succeed."""


class ShareMember:
    """Makes each heartbeat, and processes its response.

    The coordinator sends an assignment once, and again only to a member that names its topics. So
    heartbeats name them until the last response is known to be in effect.
    """

    def __init__(self, group: str, member_id: str, topics: Iterable[str]) -> None:
        self.group, self.id, self._topics = group, member_id, list(topics)
        self._epoch = JOINING
        self._missed_one = False
        """Whether the last heartbeat had no response, or its assignment is not in effect."""

    def heartbeat(self) -> ShareGroupHeartbeatRequest:
        is_full, self._missed_one = self._missed_one or self._epoch == JOINING, True
        return self._request(self._epoch, self._topics if is_full else None)

    def leave(self) -> ShareGroupHeartbeatRequest:
        return self._request(LEAVING, None)

    def received(self, response: ShareGroupHeartbeatResponse) -> None:
        """Raise the response's error; a removed member joins again with the next heartbeat."""
        if response.error_code in _FORGOTTEN:
            self._epoch = JOINING
        check(response.error_code, f"share group {self.group}", response.error_message)
        self._epoch = response.member_epoch

    def taken(self) -> None:
        """The assignment of the last response, if it had one, is in effect."""
        self._missed_one = False

    def _request(self, epoch: int, topics: list[str] | None) -> ShareGroupHeartbeatRequest:
        return ShareGroupHeartbeatRequest(
            group_id=self.group,
            member_id=self.id,
            member_epoch=epoch,
            subscribed_topic_names=topics,
        )
