"""A setting that is declared but not documented, or documented otherwise, fails here."""

import inspect

import pytest
from scripts import dashboards, docs

from penstock.broker.handlers.table import HANDLERS
from penstock.compiled import docstring
from penstock.config.broker import broker_settings
from penstock.config.consumer_group import ConsumerGroupConfig
from penstock.config.setting import settings
from penstock.config.topic import TopicConfig
from penstock.wire.apis import APIS


@pytest.mark.parametrize("name", docs.PAGES)
def test_a_generated_page_is_what_the_code_gives(name: str) -> None:
    page = (docs.DOCS / name).read_text(encoding="utf-8")
    assert page.splitlines() == docs.PAGES[name]().splitlines(), "run scripts/docs.py"


def test_the_dashboards_are_what_their_table_gives() -> None:
    for path, text in dashboards.written().items():
        assert path.read_text() == text, "run make docs"


def test_every_setting_is_on_the_page() -> None:
    page = (docs.DOCS / "settings.md").read_text(encoding="utf-8")
    for name in [*broker_settings(), *settings(TopicConfig), *settings(ConsumerGroupConfig)]:
        assert f"| `{name}` |" in page


def test_every_setting_says_what_it_does() -> None:
    own = [*settings(TopicConfig).values(), *settings(ConsumerGroupConfig).values()]
    for each in [*broker_settings().values(), *own]:
        assert each.doc.endswith("."), each.name


def test_every_api_and_every_handler_is_on_the_page() -> None:
    page = (docs.DOCS / "compatibility.md").read_text(encoding="utf-8")
    for api in APIS.values():
        assert f"| {api.key} | {api.name} |" in page
    for key in HANDLERS:
        assert f"**{APIS[key].name}**: " in page


def test_every_handler_states_the_versions_that_the_table_has() -> None:
    for key, handler in HANDLERS.items():
        api, module = APIS[key], inspect.getmodule(handler)
        assert module is not None
        versions = f"v{api.low}-v{api.high}" if api.low < api.high else f"v{api.low}"
        assert docstring(module).startswith(f"{api.name} (key {key}, {versions}): ")
