"""OffsetFetch as a request and its answer: all offsets that a group has committed.

And whether an answer about groups is about the one that was asked for.
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
"""The first version that asks for, and answers about, many groups."""


class GroupNotNamed(KafkaError):
    """The answer is not about the group: the coordinator may be loading, or have moved."""

    code = ErrorCode.COORDINATOR_NOT_AVAILABLE


def committed_request(group: str) -> OffsetFetchRequest:
    """Only offsets that no open transaction may move (KIP-447)."""
    return OffsetFetchRequest(
        group_id=group,
        topics=None,
        groups=[OffsetFetchRequestGroup(group_id=group, topics=None)],
        require_stable=True,
    )


def answer_about(
    group: str, response: OffsetFetchResponse, version: int
) -> OffsetFetchResponseGroup | OffsetFetchResponse:
    """The part of the answer that is about the group; refused if there is none, or an error.

    An answer without the group says nothing: it must not be taken for "no offsets".
    """
    found: OffsetFetchResponseGroup | OffsetFetchResponse | None = response
    if version >= MANY_GROUPS:
        found = next((each for each in response.groups if each.group_id == group), None)
    if found is None:
        raise GroupNotNamed(f"the answer does not name group {group}")
    check(found.error_code, f"offsets of group {group}")
    for topic in found.topics:
        for each in topic.partitions:
            check(each.error_code, f"offset of group {group} in partition {each.partition_index}")
    return found


class _AboutGroup(Protocol):
    """One group in an answer about several."""

    @property
    def group_id(self) -> str: ...

    @property
    def error_code(self) -> int: ...

    @property
    def error_message(self) -> str | None: ...


def check_groups(group: str, answers: Sequence[_AboutGroup]) -> None:
    """Raise what the answer says of the group; that it says nothing is an error too."""
    if [each.group_id for each in answers] != [group]:
        raise GroupNotNamed(f"the answer does not name group {group}")
    check(answers[0].error_code, f"group {group}", answers[0].error_message)
