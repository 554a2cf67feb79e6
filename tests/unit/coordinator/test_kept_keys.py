"""Which partition of an internal topic a name belongs to, and the cache of its hashes."""

import pytest

from penstock.coordinator.keys import LONGEST_KEPT, _kept_hash, partition_for


@pytest.mark.parametrize(("key", "partition"), [("", 0), ("g", 3), ("console-consumer-12345", 6)])
def test_a_long_name_is_hashed_like_a_short_one(key: str, partition: int) -> None:
    long = "x" * (LONGEST_KEPT + 1) + key
    assert partition_for(key, 50) == partition
    assert partition_for(long, 50) == abs(_kept_hash.__wrapped__(long)) % 50


def test_long_names_are_not_cached() -> None:
    """Sixteen thousand names of 32 KB each would be half a gigabyte."""
    before = _kept_hash.cache_info().currsize
    for number in range(100):
        partition_for(f"{number}".rjust(32_000, "x"), 50)
    assert _kept_hash.cache_info().currsize == before
    partition_for("a name that no other test has", 50)
    assert _kept_hash.cache_info().currsize in {before + 1, 16384}
