"""The group's part of an OffsetFetch response, and responses that lack it."""

import pytest

from penstock.client.committed import (
    GroupNotInResponse,
    check_groups,
    committed_request,
    group_offsets,
)
from penstock.client.errors import ALWAYS_RETRIABLE, BrokerRefused
from penstock.errors import ErrorCode
from penstock.wire.apis import APIS
from penstock.wire.codec import decode, encode
from penstock.wire.messages.delete_groups import DeletableGroupResult
from penstock.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

EVERY_VERSION = range(2, APIS[9].high + 1)


def received(response: OffsetFetchResponse, version: int) -> OffsetFetchResponse:
    return decode(OffsetFetchResponse, version, encode(response, version))


@pytest.mark.parametrize("version", [8, 9, 10])
@pytest.mark.parametrize("named", [[], ["another"]])
def test_a_response_without_the_group_is_an_error_and_retriable(
    version: int, named: list[str]
) -> None:
    groups = [OffsetFetchResponseGroup(group_id=each) for each in named]
    with pytest.raises(GroupNotInResponse, match="does not contain group g") as refused:
        group_offsets("g", received(OffsetFetchResponse(groups=groups), version), version)
    assert refused.value.code in ALWAYS_RETRIABLE


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_a_group_without_offsets_is_a_valid_response(version: int) -> None:
    groups = [OffsetFetchResponseGroup(group_id="other"), OffsetFetchResponseGroup(group_id="g")]
    response = OffsetFetchResponse(groups=groups if version >= 8 else [])
    assert group_offsets("g", received(response, version), version).topics == []


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_the_error_of_the_group_is_raised(version: int) -> None:
    code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    response = (
        OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", error_code=code)])
        if version >= 8
        else OffsetFetchResponse(error_code=code)
    )
    with pytest.raises(BrokerRefused, match="COORDINATOR_LOAD_IN_PROGRESS"):
        group_offsets("g", received(response, version), version)


def test_an_unstable_offset_is_retriable() -> None:
    unstable = OffsetFetchResponsePartitions(error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
    group = OffsetFetchResponseGroup(
        group_id="g", topics=[OffsetFetchResponseTopics(partitions=[unstable])]
    )
    with pytest.raises(BrokerRefused) as refused:
        group_offsets("g", received(OffsetFetchResponse(groups=[group]), 9), 9)
    assert refused.value.code in ALWAYS_RETRIABLE


def test_only_stable_offsets_are_requested() -> None:
    assert committed_request("g").require_stable


@pytest.mark.parametrize("named", [[], ["another"], ["g", "another"]])
def test_a_response_without_the_group_does_not_count_as_success(named: list[str]) -> None:
    with pytest.raises(GroupNotInResponse):
        check_groups("g", [DeletableGroupResult(group_id=each) for each in named])


def test_a_group_succeeds_or_raises_its_error() -> None:
    check_groups("g", [DeletableGroupResult(group_id="g")])
    with pytest.raises(BrokerRefused, match="NON_EMPTY_GROUP"):
        check_groups("g", [DeletableGroupResult(group_id="g", error_code=68)])
