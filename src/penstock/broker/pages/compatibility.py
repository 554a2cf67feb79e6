"""`docs/compatibility.md`: every API, which versions are served, and what is left out."""

import inspect
from collections.abc import Mapping

from penstock.broker.context import AnyHandler
from penstock.broker.handlers.table import HANDLERS
from penstock.compiled import docstring
from penstock.wire.apis import APIS, Api

HEAD = """\
# Compatibility

Written by `make docs` from the table of APIs and the handlers; a test fails when it has drifted.
Versions are those of Kafka 4.4, and of Kafka 3.9 for requests between brokers. A broker advertises
exactly what has a handler, at every version listed here.

| key | API | versions | flexible from | served |
|---:|---|---|---|---|
"""

CONTRACTS = """
## Contracts

What each handler says of itself: what it does, refuses and leaves out.
"""


def compatibility_page() -> str:
    rows = "".join(_row(api, HANDLERS) for api in APIS.values())
    contracts = "".join(
        f"\n**{APIS[key].name}**: {_contract(handler)}\n"
        for key, handler in sorted(HANDLERS.items())
    )
    return HEAD + rows + CONTRACTS + contracts


def _row(api: Api, handlers: Mapping[int, AnyHandler]) -> str:
    flexible = "-" if api.flexible > api.high else str(api.flexible)
    served = "yes" if api.key in handlers else "-"
    between = " (between brokers)" if api.inter_broker else ""
    return f"| {api.key} | {api.name} | {api.low}-{api.high} | {flexible} | {served}{between} |\n"


def _contract(handler: AnyHandler) -> str:
    """The docstring of the handler's module, without the API's name, in one paragraph."""
    module = inspect.getmodule(handler)
    assert module is not None
    text = " ".join(inspect.cleandoc(docstring(module)).split())
    _, _, contract = text.partition(": ")
    return contract
