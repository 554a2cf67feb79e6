"""OffsetFetch request and response: all offsets that a group has committed.

Also checks that a response about groups contains the requested group.
"""

from collections.abc import Sequence
from typing import Protocol

from penstock.client.errors import check
from penstock.errors import ErrorCode, KafkaError
from penstock.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)

MANY_GROUPS = 8
"""The first version that covers several groups per request."""


class GroupNotInResponse(KafkaError):
    """The response lacks the group: the coordinator may be loading, or have moved."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


def committed_request(group: str) -> OffsetFetchRequest:
    """Requests stable offsets only: none that an open transaction may still change (KIP-447)."""
    return OffsetFetchRequest(
        group_id=group,
        topics=None,
        groups=[OffsetFetchRequestGroup(group_id=group, topics=None)],
        require_stable=True,
    )


def group_offsets(
    group: str, response: OffsetFetchResponse, version: int
) -> OffsetFetchResponseGroup | OffsetFetchResponse:
    """The group's part of the response; raises if it is missing or has an error.

    A response without the group must not be taken for "no offsets".
    """
    found: OffsetFetchResponseGroup | OffsetFetchResponse | None = response
    if version >= MANY_GROUPS:
        found = next((each for each in response.groups if each.group_id == group), None)
    if found is None:
        raise GroupNotInResponse(f"the response does not contain group {group}")
    check(found.error_code, f"offsets of group {group}")
    for topic in found.topics:
        for each in topic.partitions:
            check(each.error_code, f"offset of group {group} in partition {each.partition_index}")
    return found


class _GroupResult(Protocol):
    """One group in a response about several."""

    @property
    def group_id(self) -> str: ...

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...


def check_groups(group: str, results: Sequence[_GroupResult]) -> None:
    """Raise the group's error, or `GroupNotInResponse` unless it is the only group in it."""
    if [each.group_id for each in results] != [group]:
        raise GroupNotInResponse(f"the response does not contain group {group}")
    check(results[0].error_code, f"group {group}", results[0].error_message)
