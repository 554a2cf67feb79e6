"""What `plan --from-cluster` takes from a cluster."""

from penstock.advice.workload import retention


def test_retention_is_the_longest() -> None:
    assert retention({"a": 1000, "b": 60_000}) == {"retention_s": 60}


def test_a_topic_that_keeps_its_records_for_ever_leaves_retention_to_be_given() -> None:
    assert retention({"a": 1000, "b": -1}) == {}
    assert retention({"b": -1}) == {}
