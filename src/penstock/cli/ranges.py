"""Number options within the ranges of Kafka's protocol."""

from math import isnan
from typing import Any

import click

MAX_INT16, MAX_INT32 = (1 << 15) - 1, (1 << 31) - 1
PARTITIONS = click.IntRange(1, MAX_INT32)
REPLICAS = click.IntRange(1, MAX_INT16)
PARTITION = click.IntRange(0, MAX_INT32)


class SecondsType(click.FloatRange):
    """A duration in seconds: above zero, and at most 32 bits of milliseconds."""

    def __init__(self) -> None:
        super().__init__(min=0, min_open=True, max=MAX_INT32 // 1000)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        seconds = super().convert(value, param, ctx)
        if isnan(seconds):  # NaN passes every range check
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        return seconds


SECONDS = SecondsType()
