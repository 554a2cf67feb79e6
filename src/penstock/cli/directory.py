"""Directory options."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import click


class DirectoryType(click.Path):
    """A directory option that refuses an empty text, which an unset variable in a script leaves.

    As a path, an empty text would mean the working directory, and a broker would write its files
    there.
    """

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if value == "":
            self.fail("must not be empty; the working directory is '.'", param, ctx)
        return super().convert(value, param, ctx)


DIRECTORY = DirectoryType()


def serve_command(home: Path, log_dirs: Sequence[Path]) -> str:
    """The shell command that serves this directory. Log directories that `serve` finds itself
    are left out.
    """
    absolute = [each.absolute() for each in log_dirs]
    command = f"penstock serve --dir {quote(str(home))}"
    if absolute == [home.absolute() / "logs"]:
        return command
    return f"{command} --set {quote('log.dirs=' + ','.join(map(str, absolute)))}"
