"""The order of flows that run once."""

from penstock.spark.pipeline.flow_order import stages
from penstock.spark.pipeline.flow_spec import FlowSpec, From, To


def flow(name: str, source: From, to: str, dead_letters: str | None = None) -> FlowSpec:
    return FlowSpec(name=name, source=source, to=To(topic=to), dead_letters=dead_letters)


def names(*flows: FlowSpec) -> list[list[str]]:
    return [[each.name for each in some] for some in stages(flows)]


def test_a_flow_that_reads_a_topic_runs_after_those_that_fill_it() -> None:
    last = flow("last", From(topic="b"), "c")
    first = flow("first", From(files="x"), "a")
    middle = flow("middle", From(topic="a"), "b")
    in_thread = flow("apart", From(topic="elsewhere"), "d")
    assert names(last, first, middle, in_thread) == [["first", "apart"], ["middle"], ["last"]]


def test_dead_letters_fill_a_topic_too() -> None:
    redrive = flow("redrive", From(topic="dead"), "again")
    failing = flow("failing", From(topic="a"), "b", dead_letters="dead")
    assert names(redrive, failing) == [["failing"], ["redrive"]]


def test_flows_in_a_cycle_run_together() -> None:
    there, back = flow("there", From(topic="a"), "b"), flow("back", From(topic="b"), "a")
    after, itself = flow("after", From(topic="b"), "c"), flow("itself", From(topic="d"), "d")
    assert names(there, back, after, itself) == [["there", "back", "after", "itself"]]
