"""Which tests with other servers run at the same time."""

from pathlib import Path

from support.side_by_side import GROUPS, LONGEST, next_part, part_of

CONTRACT = Path(__file__).parents[2] / "contract"


def files_that_use(*words: str) -> set[str]:
    files = CONTRACT.rglob("test_*.py")
    return {each.name for each in files if any(word in each.read_text() for word in words)}


def test_all_tests_that_start_spark_are_one_group() -> None:
    own = ("SparkCluster", "SparkConnect", "WarmCommand", "spark_query import", "run_projects")
    files = files_that_use("lab_beside(", "spark_session(", *own)
    # It runs without the JVM, in the environment of Spark's tests.
    assert {each for each in files if part_of(each) != "spark"} == {"test_epoch_kills.py"}


def test_all_tests_that_cut_links_are_one_group() -> None:
    assert {part_of(each) for each in files_that_use("faults.links")} == {"faults"}


def test_a_group_is_one_part_and_so_is_each_other_file() -> None:
    sink, source = (f"tests/contract/test_spark_{each}.py::test_it" for each in ("sink", "source"))
    assert part_of(sink) == part_of(source) == "spark"
    assert part_of("tests/contract/test_peers.py::test_it[a::b]") == "tests/contract/test_peers.py"


def test_long_parts_run_first_and_others_in_their_order() -> None:
    assert next_part(["b.py", "a.py", "faults", "spark"]) == "spark"
    assert next_part(["b.py", "a.py"]) == "b.py"


def test_files_named_as_long_exist() -> None:
    names = {each.name for each in CONTRACT.rglob("test_*.py")}
    assert {*LONGEST} <= names | GROUPS.keys()
