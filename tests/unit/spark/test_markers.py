"""Which responses about the sink's group say something about its markers."""

import pytest

from penstock.client.committed import GroupNotInResponse
from penstock.client.errors import RETRIABLE, BrokerRefused
from penstock.errors import ErrorCode
from penstock.spark.sink.epoch import EpochMarker
from penstock.spark.sink.marker import markers_of
from penstock.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

MARKER = EpochMarker("q", 6)
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def by_group(name: str, code: int = 0, of_partition: int = 0) -> OffsetFetchResponse:
    reported = OffsetFetchResponsePartitions(
        committed_offset=6, metadata=MARKER.metadata, error_code=of_partition
    )
    topics = [OffsetFetchResponseTopics(name="out", partitions=[reported])]
    group = OffsetFetchResponseGroup(group_id=name, topics=topics, error_code=code)
    return OffsetFetchResponse(groups=[group])


def test_markers_are_found_in_every_version() -> None:
    assert markers_of(by_group("sink"), "sink", 8) == (MARKER,)
    reported = OffsetFetchResponsePartition(committed_offset=6, metadata=MARKER.metadata)
    topics = [OffsetFetchResponseTopic(name="out", partitions=[reported])]
    assert markers_of(OffsetFetchResponse(topics=topics), "sink", 7) == (MARKER,)


def test_a_group_without_offsets_has_no_marker() -> None:
    assert markers_of(OffsetFetchResponse(), "sink", 7) == ()
    nothing = OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="sink")])
    assert markers_of(nothing, "sink", 9) == ()


@pytest.mark.parametrize("version", [8, 9, 10])
@pytest.mark.parametrize(
    "response",
    [OffsetFetchResponse(), OffsetFetchResponse(error_code=LOADING), by_group("another")],
    ids=["empty", "an error that is not on the wire", "another group"],
)
def test_a_response_without_the_group_is_retried(
    response: OffsetFetchResponse, version: int
) -> None:
    with pytest.raises(GroupNotInResponse, match="does not contain group sink") as caught:
        markers_of(response, "sink", version)
    assert caught.value.code in RETRIABLE


@pytest.mark.parametrize(
    "response", [by_group("sink", LOADING), by_group("sink", of_partition=LOADING)]
)
def test_an_error_response_says_nothing_about_markers(response: OffsetFetchResponse) -> None:
    with pytest.raises(BrokerRefused, match=r"of group sink.*: COORDINATOR_LOAD_IN_PROGRESS"):
        markers_of(response, "sink", 8)
