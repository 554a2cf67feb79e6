"""Every option of the source and the sink is documented."""

from pathlib import Path

from penstock.spark.options import NoEffect, Supported, Unsupported
from penstock.spark.sink.settings import PRODUCER, SINK
from penstock.spark.source.settings import SOURCE

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "spark.md").read_text(encoding="utf-8")
SINK_PAGE = (DOCS / "spark-sink.md").read_text(encoding="utf-8")
OF_SPARK = {"queryName"}
"""Passed to every sink by Spark itself."""


def test_every_option_that_is_read_is_documented() -> None:
    taken = [name for name, use in SOURCE.items() if isinstance(use, Supported)]
    assert [name for name in taken if f"`{name}`" not in PAGE] == []


def test_every_option_of_the_sink_that_is_read_is_documented() -> None:
    own = {name: use for name, use in SINK.items() if not name.startswith("kafka.")}
    own |= {f"kafka.{name}": use for name, use in PRODUCER.items()}
    taken = {name for name, use in own.items() if isinstance(use, Supported)} - OF_SPARK
    assert sorted(name for name in taken if f"`{name}`" not in SINK_PAGE) == []


def test_options_without_effect_have_a_reason() -> None:
    for name, use in (SOURCE | SINK).items():
        if isinstance(use, NoEffect):
            assert use.why, name
        if isinstance(use, Unsupported):
            assert use.instead, name
