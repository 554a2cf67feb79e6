"""Rare APIs and costly modules are imported at first use."""

import subprocess
import sys

import pytest

from penstock.broker import handlers
from penstock.broker.handlers.table import EAGER, HANDLERS
from penstock.broker.handling.lazy_handlers import LazyHandlers, each

LOADED = """
import sys
import penstock.broker.app
print(*(name.rpartition(".")[2] for name in sys.modules if ".broker.handlers." in name))
"""


def test_startup_imports_only_the_handlers_of_frequent_apis() -> None:
    text = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True).stdout
    loaded = set(text.decode().split()) - {"late", "table"}
    assert loaded == {HANDLERS[key].__name__ for key in EAGER}


COSTLY = {"cramjam", "email", "re2", "urllib.request", "zipfile"}
"""Together a tenth of an idle broker's memory."""


def test_startup_imports_no_costly_module() -> None:
    code = "import sys, penstock.broker.app; print(*sys.modules)"
    text = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout
    assert set(text.decode().split()) & COSTLY == set()


def test_a_handler_is_resolved_and_wrapped_once_on_demand() -> None:
    found: list[int] = []

    def handler(request: object, ctx: object) -> None: ...

    def find() -> LazyHandlers:
        return LazyHandlers({7: lambda: found.append(7) or handler})  # type: ignore[func-returns-value]

    changed = each(find(), lambda key, _: lambda *_: key)  # type: ignore[arg-type,return-value]
    assert list(changed) == [7]
    assert len(changed) == 1
    assert found == []
    assert changed[7] is changed[7]
    assert found == [7]


def test_an_unknown_module_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"no module penstock\.broker\.handlers\.nothing"):
        handlers.nothing  # type: ignore[attr-defined]  # noqa: B018
