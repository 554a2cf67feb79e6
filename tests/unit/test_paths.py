"""`make paths` counts files, their lines, and calls from one file into another."""

import sys
from collections.abc import Callable

import pytest
from scripts.paths import SOURCE, Count, Tracer

from penstock.log.naming import parse_dir_name
from penstock.log.partition_metadata import encode_partition_metadata
from penstock.record.batch import batches
from penstock.testing.logs import batch_of
from penstock.types import Uuid


def counted(work: Callable[[], object]) -> Count:
    tracer = Tracer()
    before = sys.getprofile()
    sys.setprofile(tracer)
    try:
        with tracer.counting():
            work()
    finally:
        sys.setprofile(before)
    return tracer.count()


def test_a_call_within_one_file_is_not_a_switch() -> None:
    count = counted(lambda: parse_dir_name("t-0"))
    lines = len((SOURCE / "log/naming.py").read_text().splitlines())
    assert count == Count(("log/naming.py",), lines, 0)


@pytest.mark.pure
def test_third_party_code_and_the_test_kit_are_not_counted() -> None:
    batch = batch_of(b"value")
    assert counted(lambda: sorted([3, 1])).files == ()
    files = counted(lambda: batch_of(b"value")).files
    assert not any(each.startswith("testing/") for each in files)
    assert "record/batch.py" in counted(lambda: list(batches(batch))).files


def test_a_call_into_another_file_is_a_switch() -> None:
    count = counted(lambda: encode_partition_metadata(Uuid(bytes(16))))
    assert (count.files, count.switches) == (("log/partition_metadata.py", "types.py"), 1)
