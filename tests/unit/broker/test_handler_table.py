"""The table of handlers: each API is answered by the handler of its own messages."""

from collections.abc import Iterator
from typing import get_args, get_type_hints

import pytest

from penstock.broker.handlers.table import HANDLERS
from penstock.wire.apis import APIS
from penstock.wire.schema import Message


def messages(hint: object) -> Iterator[object]:
    """The message types inside an annotation."""
    if isinstance(hint, type) and issubclass(hint, Message):
        yield hint
    for part in get_args(hint):
        yield from messages(part)


@pytest.mark.pure
@pytest.mark.parametrize("key", HANDLERS, ids=lambda key: APIS[key].name)
def test_a_handler_names_the_request_and_response_of_its_api(key: int) -> None:
    hints = get_type_hints(HANDLERS[key])
    *arguments, returned = hints.values()
    assert arguments[0] is APIS[key].request
    assert set(messages(returned)) == {APIS[key].response}
