from pathlib import Path

from penstock.spark.options import NoEffect, Refused, Taken
from penstock.spark.source_settings import SOURCE

PAGE = (Path(__file__).parents[3] / "docs" / "spark.md").read_text(encoding="utf-8")


def test_every_option_that_is_read_is_documented() -> None:
    taken = [name for name, use in SOURCE.items() if isinstance(use, Taken)]
    assert [name for name in taken if f"`{name}`" not in PAGE] == []


def test_words_about_options_say_why() -> None:
    for name, use in SOURCE.items():
        if isinstance(use, NoEffect):
            assert use.why, name
        if isinstance(use, Refused):
            assert use.instead, name
