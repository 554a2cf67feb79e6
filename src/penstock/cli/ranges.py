"""Numbers in options, within what Kafka's protocol can carry."""

from math import isnan
from typing import Any

import click

MAX_INT16, MAX_INT32 = (1 << 15) - 1, (1 << 31) - 1
PARTITIONS = click.IntRange(1, MAX_INT32)
REPLICAS = click.IntRange(1, MAX_INT16)
PARTITION = click.IntRange(0, MAX_INT32)


class SecondsType(click.FloatRange):
    """A time to wait: more than none, and as milliseconds at most 32 bits."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=MAX_INT32 // 1000)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        seconds = super().convert(value, param, ctx)
        if isnan(seconds):  # it is in every range, since it compares with nothing
            self.fail(f"{value!r} is no number of seconds", param, ctx)
        return seconds


SECONDS = SecondsType()
