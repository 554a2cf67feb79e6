"""A handler whose error and result cannot be pickled; in a module, as other processes import it."""

import threading
from typing import Any

from penstock.sdk.record import Record


class Refused(Exception):
    """Takes other arguments than those that pickle remembers."""

    def __init__(self, what: int, why: str) -> None:
        super().__init__(f"{what} is {why}")


def refuse_at_0(record: Record[Any, Any]) -> object:
    if record.offset == 0:
        raise Refused(0, "refused")
    return threading.Lock()
