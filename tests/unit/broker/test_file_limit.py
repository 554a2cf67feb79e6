"""The shares of the open-file limit, and requests that exceed it."""

import resource

import pytest

from penstock.broker.startup.file_limit import (
    TooManyPartitions,
    check_room,
    raised_file_limit,
    shares,
)
from penstock.log.open_segments import MAX_LIMIT


@pytest.mark.parametrize("limit", [256, 1024, 20_000, 1 << 20])
def test_the_shares_leave_room_for_files_opened_briefly(limit: int) -> None:
    parts = shares(limit)
    assert parts.segments < parts.held
    assert parts.held + parts.connections <= limit * 8 // 10 + 1
    assert parts.segments <= MAX_LIMIT
    assert 0 < parts.slices < parts.held - parts.segments


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, hard), hard))
        assert raised_file_limit() == hard
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
        assert raised_file_limit() == hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_many_partitions_are_refused_with_advice() -> None:
    small = shares(1024)
    check_room(small, 0, small.partitions, 1)
    check_room(small, 0, 3 * small.partitions, 3)
    with pytest.raises(TooManyPartitions, match=r"limit of 1024 open files.*ulimit -n"):
        check_room(small, small.partitions - 10, 11, 1)
