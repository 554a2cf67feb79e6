"""Which partition a record goes to, by its key or without one."""

from collections import Counter

import pytest

from penstock.client.backoff import backoff_ms
from penstock.client.errors import BrokerRefused, check
from penstock.client.murmur2 import murmur2
from penstock.client.partitioner import StickyPartitioner, keyed_partition
from penstock.errors import ErrorCode

# As the Java client's Utils.murmur2 gives them.
JAVA = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536}


@pytest.mark.parametrize("key", JAVA)
def test_the_hash_is_that_of_the_java_client(key: bytes) -> None:
    assert murmur2(key) == JAVA[key] & 0xFFFFFFFF


def test_a_key_always_goes_to_the_same_partition() -> None:
    keys = [b"%d" % n for n in range(1_000)]
    counts = Counter(keyed_partition(key, 7) for key in keys)
    assert sorted(counts) == list(range(7))
    assert min(counts.values()) > 100


def test_records_without_keys_fill_a_batch_before_the_next_partition() -> None:
    spread = StickyPartitioner(batch_bytes=100, turn=2)
    places = [spread.next([0, 1, 5], 40) for _ in range(6)]
    assert places == [5, 5, 0, 0, 1, 1]


def test_a_record_larger_than_a_batch_gets_a_partition() -> None:
    spread = StickyPartitioner(batch_bytes=100, turn=0)
    assert [spread.next([0, 1], 500) for _ in range(3)] == [0, 1, 0]


def test_the_backoff_doubles_up_to_its_limit() -> None:
    waits = [backoff_ms(failures, chance=0.5) for failures in range(1, 7)]
    assert waits == [100, 200, 400, 800, 1000, 1000]
    assert backoff_ms(1, chance=0) == 80
    assert backoff_ms(10_000, chance=0.999) < 1200


def test_an_unknown_error_code_is_shown_by_its_number() -> None:
    with pytest.raises(BrokerRefused, match=r"topic t: error code 999 \(no\)") as caught:
        check(999, "topic t", "no")
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    check(0, "topic t")
