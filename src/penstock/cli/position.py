"""Positions and times as options: `beginning`, `-10`, `@-1h`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.frame.terminal import warn
from penstock.clock import SystemClock
from penstock.types import TopicPartition

if TYPE_CHECKING:
    from penstock.client.position import Found, Position


class PositionType(click.ParamType["Position"]):
    """A position option, such as `beginning`, `-10` or `@-1h`."""

    name = "position"

    def convert(self, value: Any, param: Any, ctx: Any) -> "Position":
        from penstock.client.position import parse_position  # late: keeps --help fast

        try:
            return parse_position(value, SystemClock().now_ms())
        except ValueError as error:
            self.fail(str(error), param, ctx)


class TimeType(click.ParamType[int]):
    """A time option, in milliseconds."""

    name = "time"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        from penstock.client.position import parse_time  # late: keeps --help fast

        try:
            return parse_time(value, SystemClock().now_ms())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def warn_of_nearest(found: "Mapping[TopicPartition, Found]") -> None:
    """Warn about partitions that do not have the requested offset."""
    for tp, (wanted, offset) in found.items():
        if wanted != offset:
            side = "end" if wanted > offset else "beginning"
            warn(f"{tp.topic}-{tp.partition} has no offset {wanted}; using its {side}, {offset}")
