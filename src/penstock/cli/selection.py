"""Options that select records of delay, retry and dead letter topics."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from penstock.cli.frame.terminal import warn
from penstock.cli.position import TimeType
from penstock.counted import counted
from penstock.retry.selection import Selection

if TYPE_CHECKING:
    from penstock.record_view.filter import RecordFilter


class PlaceType(click.ParamType[tuple[int, int]]):
    """`PARTITION:OFFSET`."""

    name = "position"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[int, int]:
        if isinstance(value, tuple):
            return value
        partition, _, offset = str(value).partition(":")
        if not all(each.isascii() and each.isdecimal() for each in (partition, offset)):
            self.fail(f"{value!r} is not PARTITION:OFFSET, such as 0:17", param, ctx)
        return int(partition), int(offset)


POSITIONS = click.argument("positions", metavar="[PARTITION:OFFSET]...", nargs=-1, type=PlaceType())


class ChosenRecords:
    """The selection of the options."""

    def __init__(self, selection: Selection, wanted: "RecordFilter | None") -> None:
        self.selection, self._filter = selection, wanted

    def warn(self) -> None:
        """Warn how many records the filter failed on."""
        if self._filter is not None and self._filter.failures:
            first = self._filter.first_failure
            warn(f"--filter failed on {counted(self._filter.failures, 'record')}: {first}")


def selection_options(
    since: str, until: str, time: str
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options, whose values are for `chosen_records`; `time` names the time
    that is compared.
    """
    options = (
        click.option("-k", "--key", help="Only records with this key."),
        click.option(
            "--error",
            metavar="TEXT",
            help="Only records whose header penstock-error contains this.",
        ),
        click.option(
            since,
            "since_ms",
            metavar="TIME",
            type=TimeType(),
            help=f"Only records {time} at this time or later: ms since 1970, ISO-8601, -1h or +1h.",
        ),
        click.option(
            until,
            "until_ms",
            metavar="TIME",
            type=TimeType(),
            help=f"Only records {time} before this time.",
        ),
        click.option(
            "--filter",
            "expression",
            metavar="CEL",
            help="Only records for which this is true, as in `penstock consume`.",
        ),
    )

    def added(command: Callable[..., None]) -> Callable[..., None]:
        for option in reversed(options):
            command = option(command)
        return POSITIONS(command)

    return added


def chosen_records(
    *,
    positions: tuple[tuple[int, int], ...],
    key: str | None,
    error: str | None,
    since_ms: int | None,
    until_ms: int | None,
    expression: str | None,
    origin: str | None = None,
) -> ChosenRecords:
    wanted = None if expression is None else _filter(expression)
    selection = Selection(
        positions=frozenset(positions),
        key=None if key is None else key.encode(),
        error=error,
        origin=origin,
        since_ms=since_ms,
        until_ms=until_ms,
        matches=None if wanted is None else wanted.matches,
    )
    return ChosenRecords(selection, wanted)


def _filter(expression: str) -> "RecordFilter":
    from penstock.record_view.detect import detected  # late: only needed for filters
    from penstock.record_view.filter import record_filter

    return record_filter(expression, detected, detected)
