"""The walks in C and in Python give the same result or the same error text for any bytes."""

import os
import random
from collections.abc import Callable
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.record.batch import HEADER_BYTES
from penstock.record.build import build_batch
from penstock.record.invalid import InvalidRecord
from penstock.record.record import Record
from penstock.record.search import find, find_in_python
from penstock.record.walk import NATIVE, walk, walk_in_python
from penstock.types import Buffer
from support.records.record_bytes import damaged, noise, some_payload, untouched

pytestmark = pytest.mark.skipif(not NATIVE, reason="the extension was not built")
CASES = 2_000_000 if "PENSTOCK_SOAK" in os.environ else 50_000

Walk = Callable[[Buffer, int, bool], tuple[int, int]]
Find = Callable[[Buffer, int, int, int], tuple[int, int] | None]


def outcome(call: Walk, data: Buffer, count: int, keys_required: bool) -> tuple[int, int] | str:
    try:
        return call(data, count, keys_required)
    except InvalidRecord as refusal:
        return str(refusal)


def agreed(data: Buffer, count: int, keys_required: bool) -> tuple[int, int] | str:
    in_c = outcome(walk, data, count, keys_required)
    assert in_c == outcome(walk_in_python, data, count, keys_required), (bytes(data).hex(), count)
    return in_c


@given(
    st.binary(max_size=60),
    st.integers(-1, 4) | st.just(2**31 - 1),
    st.tuples(st.integers(-70, 70), st.integers(-70, 70)),
)
def test_the_searches_agree_on_any_bytes(data: bytes, count: int, deltas: tuple[int, int]) -> None:
    assert found_by(find, data, count, *deltas) == found_by(find_in_python, data, count, *deltas)


def test_the_searches_agree_on_damaged_records_and_noise() -> None:
    dice = random.Random("searches")
    found = 0
    for _ in range(CASES // 5):
        data, count = some_payload(dice)
        data = dice.choice([untouched, damaged, noise])(data, dice)
        deltas = dice.randrange(-5, 1_000), dice.randrange(-2, 6)
        result = found_by(find, data, count, *deltas)
        assert result == found_by(find_in_python, data, count, *deltas), (data.hex(), deltas)
        found += isinstance(result, tuple)
    assert found > CASES // 100


def found_by(call: Find, data: Buffer, *wanted: int) -> tuple[int, int] | str | None:
    try:
        return call(data, *wanted)
    except InvalidRecord as refusal:
        return str(refusal)


@given(st.binary(max_size=60), st.integers(-1, 4) | st.just(2**31 - 1), st.booleans())
def test_the_twins_agree_on_any_bytes(data: bytes, count: int, keys_required: bool) -> None:
    agreed(data, count, keys_required)


def test_the_twins_agree_on_damaged_records_and_noise() -> None:
    dice = random.Random("twins")
    refusals: set[str] = set()
    accepted = 0
    for _ in range(CASES):
        data, count = some_payload(dice)
        data = dice.choice([untouched, damaged, damaged, damaged, noise])(data, dice)
        result = agreed(data, count + dice.choice([0, 0, 0, 1, -1]), dice.random() < 0.5)
        if isinstance(result, str):
            refusals.add("".join(each for each in result if not each.isdigit() and each != "-"))
        else:
            accepted += 1
    # The cases are only worth their time if they trigger every kind of error.
    assert len(refusals) == 10
    assert accepted > CASES // 10


def test_a_large_payload_is_walked_while_other_threads_run() -> None:
    batch = build_batch([Record(i, i, b"k", bytes(100), []) for i in range(20_000)])
    data = memoryview(batch)[HEADER_BYTES:]
    results: list[tuple[int, int]] = []
    threads = [Thread(target=lambda: results.append(walk(data, 20_000, True))) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert results == [(0, 19_999)] * 4


def test_a_non_contiguous_view_is_an_error() -> None:
    with pytest.raises(BufferError):
        walk(memoryview(bytes(8))[::2], 1, True)


@pytest.mark.parametrize(
    "arguments", [(), (b"",), (b"", 1, True, 1), ("", 0, False), (b"", "", False)]
)
def test_arguments_of_other_types_are_an_error(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        walk(*arguments)  # type: ignore[arg-type]  # that is the point
