"""The documentation has every declared setting, as declared."""

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
def test_a_generated_page_matches_the_code(name: str) -> None:
    page = (docs.DOCS / name).read_text(encoding="utf-8")
    assert page.splitlines() == docs.PAGES[name]().splitlines(), "run scripts/docs.py"


def test_the_dashboards_match_their_table() -> None:
    for path, text in dashboards.written().items():
        assert path.read_text() == text, "run make docs"


def test_every_setting_is_on_the_page() -> None:
    page = (docs.DOCS / "settings.md").read_text(encoding="utf-8")
    for name in [*broker_settings(), *settings(TopicConfig), *settings(ConsumerGroupConfig)]:
        assert f"| `{name}` |" in page


def test_every_setting_has_a_description() -> None:
    own = [*settings(TopicConfig).values(), *settings(ConsumerGroupConfig).values()]
    for each in [*broker_settings().values(), *own]:
        assert each.doc.endswith("."), each.name


def test_every_api_and_every_handler_is_on_the_page() -> None:
    page = (docs.DOCS / "compatibility.md").read_text(encoding="utf-8")
    for api in APIS.values():
        assert f"| {api.key} | {api.name} |" in page
    for key in HANDLERS:
        assert f"**{APIS[key].name}**: " in page


def test_every_handler_states_the_versions_in_the_table() -> None:
    for key, handler in HANDLERS.items():
        api, module = APIS[key], inspect.getmodule(handler)
        assert module is not None
        versions = f"v{api.low}-v{api.high}" if api.low < api.high else f"v{api.low}"
        assert docstring(module).startswith(f"{api.name} (key {key}, {versions}): ")
