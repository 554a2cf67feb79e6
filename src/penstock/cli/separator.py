r"""A separator in an option: any text, in which `\t` means a tab."""

from typing import Any

import click


class SeparatorType(click.ParamType[str]):
    """The separator between the parts of a line."""

    name = "text"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:  # noqa: ARG002
        from penstock.record_view.template import unescaped  # late: keeps --help fast

        return unescaped(value)
