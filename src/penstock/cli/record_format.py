"""`--format` for records: a format name, or a template in kcat's percent language."""

from typing import Any, Final

import click

from penstock.cli.frame.option import FORMAT_KEY, FORMATS, IS_DATA, OutputOption


class RecordFormatType(click.ParamType[str]):
    """A format name, or a template, which contains a `%`."""

    name = "format"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:
        if value not in FORMATS and "%" not in value:
            self.fail(
                f"{value!r} is neither {', '.join(FORMATS)} nor a template such as '%k %s\\n'",
                param,
                ctx,
            )
        return str(value)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:  # noqa: ARG002
        return f"[{'|'.join(FORMATS)}|TEMPLATE]"


def _store(context: click.Context, _parameter: click.Parameter, chosen: str) -> str:
    context.meta[FORMAT_KEY] = chosen if chosen in FORMATS else "text"
    return "json" if chosen in IS_DATA else chosen


RECORD_FORMAT: Final = click.option(
    "--format",
    "output",
    cls=OutputOption,
    type=RecordFormatType(),
    default="text",
    show_default=True,
    is_eager=True,
    callback=_store,
    help="json: one object per line, in the form that `produce` reads. With a % it is a template: "
    r"%s value, %k key, %t topic, %p partition, %o offset, %T timestamp, %h headers, %S and %K "
    r"lengths; \n a line end.",
)
"""Passes `output`: "text", "wide", "json" for data, or the template."""
