"""A handler whose error and result cannot be pickled; in a module, since other processes
import it.
"""

import threading
from typing import Any

from penstock.sdk.record import Record


class Refused(Exception):
    """Its constructor takes other arguments than those that pickle saves."""

    def __init__(self, what: int, why: str) -> None:
        super().__init__(f"{what} is {why}")


def refuse_at_0(record: Record[Any, Any]) -> object:
    if record.offset == 0:
        raise Refused(0, "refused")
    return threading.Lock()
