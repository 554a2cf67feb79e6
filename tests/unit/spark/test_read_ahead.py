"""Reading ahead on another thread."""

import threading
from collections.abc import Iterator

import pytest

from penstock.spark.source.read_ahead import ahead


def nothing() -> None:
    pass


def test_items_come_in_order() -> None:
    assert list(ahead(iter(range(100)), 1, nothing)) == list(range(100))
    assert list(ahead(iter(()), 1, nothing)) == []


def test_one_item_waits_and_one_is_produced_while_one_is_used() -> None:
    made = threading.Semaphore(0)

    def items() -> Iterator[int]:
        for item in range(10):
            made.release()
            yield item

    used = ahead(items(), 1, nothing)
    assert next(used) == 0
    for _ in range(3):  # the one in use, the one that waits, the one that finds no room
        assert made.acquire(timeout=10)
    assert not made.acquire(timeout=0.05)
    used.close()  # type: ignore[attr-defined]  # a generator


def test_an_error_comes_after_the_items_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("broken")

    used = ahead(items(), 1, nothing)
    assert next(used) == 1
    with pytest.raises(ValueError, match="broken"):
        next(used)


def test_stopping_early_ends_the_waiting_thread() -> None:
    woken = threading.Event()

    def items() -> Iterator[int]:
        yield 1
        assert woken.wait(30)

    used = ahead(items(), 1, woken.set)
    assert next(used) == 1
    used.close()  # type: ignore[attr-defined]  # a generator
    assert "penstock-fetch" not in {thread.name for thread in threading.enumerate()}


WITHOUT_EXTENSION = """
import sys
sys.modules["penstock.spark.decode._fill"] = None
from penstock.spark.decode import decoder, vectorised
assert not decoder.NATIVE and decoder.Decoder is vectorised.VectorisedDecoder
from penstock.spark.source.read import Decoder
assert Decoder is vectorised.VectorisedDecoder
"""


def test_numpy_decodes_without_the_extension() -> None:
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", WITHOUT_EXTENSION], check=True)
