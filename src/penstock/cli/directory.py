"""Directories in options."""

from pathlib import Path
from typing import Any

import click


class DirectoryType(click.Path):
    """Not the empty text, which is what a variable without a value leaves in a script.

    As a path it would be the working directory, and a broker would spread its files there.
    """

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value == "":
            self.fail("must not be empty; the working directory is '.'", param, ctx)
        return super().convert(value, param, ctx)


DIRECTORY = DirectoryType()
