"""AbortTransactionRecord; written by codegen."""

from typing import Annotated

from penstock.wire.schema import Message, V


class AbortTransactionRecord(Message):
    reason: Annotated[str | None, V("0+", tag=0)] = None
