"""A setting that is declared but not documented, or documented otherwise, fails here."""

from scripts import docs

from penstock.config.broker import broker_settings
from penstock.config.setting import settings
from penstock.config.topic import TopicConfig


def test_every_generated_page_is_what_the_code_gives() -> None:
    assert docs.drifted() == [], "run scripts/docs.py"


def test_every_setting_is_on_the_page() -> None:
    page = (docs.DOCS / "settings.md").read_text(encoding="utf-8")
    for name in [*broker_settings(), *settings(TopicConfig)]:
        assert f"| `{name}` |" in page


def test_every_setting_says_what_it_does() -> None:
    for each in [*broker_settings().values(), *settings(TopicConfig).values()]:
        assert each.doc.endswith("."), each.name
