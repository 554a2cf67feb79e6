"""Each Python program of the documentation parses, and uses only names that exist."""

from importlib import import_module

import pytest

from penstock.spark.sink.settings import SINK
from penstock.spark.source.settings import SOURCE
from support.docs.programs import PAGES, imported, parsed, programs, spark_options

OF_SPARK = {"checkpointLocation"}
ALL = [(page, number) for page in PAGES for number in range(len(programs(page)))]


@pytest.mark.parametrize(("page", "number"), ALL)
def test_a_program_uses_only_existing_names(page: str, number: int) -> None:
    tree = parsed(page, number)
    for module, name in imported(tree):
        found = import_module(module)
        if name is not None and not hasattr(found, name):
            import_module(f"{module}.{name}")
    options = set(spark_options(tree))
    assert options - SOURCE.keys() - SINK.keys() - OF_SPARK == set()


def test_the_documentation_has_programs() -> None:
    assert len(ALL) >= 20
