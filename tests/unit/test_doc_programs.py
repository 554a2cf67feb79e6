"""Each Python program of the documentation parses, and uses only names that exist; files with flows
and routes are accepted.
"""

import re
from importlib import import_module
from pathlib import Path

import pytest

from penstock.cli.routes import read_routes
from penstock.spark.pipeline.project import load_project
from penstock.spark.sink.settings import SINK
from penstock.spark.source.settings import SOURCE
from support.docs.programs import PAGES, ROOT, imported, parsed, programs, spark_options

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


def file_on(page: str, kind: str) -> str:
    (text,) = re.findall(rf"(?s)```{kind}\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"))
    return str(text)


def test_the_flows_on_a_page_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "spark-pipeline.yml").write_text("name: p\nstorage: st\n")
    (tmp_path / "penstock.yml").write_text(file_on("docs/pipelines.md", "yaml"))
    flows = load_project(tmp_path).own.flows
    assert [each.name for each in flows] == ["logs-in", "lake", "users"]


def test_the_routes_on_a_page_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "routes.ini").write_text(file_on("docs/delay.md", "ini"))
    assert read_routes(tmp_path / "routes.ini").keys() == {"later", "orders-again"}
