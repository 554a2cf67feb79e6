"""Runs `penstock` repeatedly in one process, whose JVM is warm after the first call.

`python -m support.commands.warm_command` reads calls from standard input, one JSON line each, and
answers likewise.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from click.testing import CliRunner

from peers.process import tied_to_us
from penstock.cli.main import main
from support.commands.penstock_command import ENVIRONMENT


class Answer(NamedTuple):
    """The result of a call; `output` is both streams as a terminal shows them."""

    exit_code: int
    stdout: str
    stderr: str
    output: str


class WarmCommand:
    """`with WarmCommand(folder) as penstock: penstock("sql", "select 1")`.

    `folder` is for its temporary files, and for `err`: everything that it and its JVM print besides
    answers.
    """

    def __init__(self, folder: Path) -> None:
        path = ":".join(filter(None, [ENVIRONMENT["PYTHONPATH"], *sys.path]))
        with (folder / "err").open("wb") as err:
            self._popen = subprocess.Popen(
                [*tied_to_us(), sys.executable, "-m", "support.commands.warm_command"],
                env={**ENVIRONMENT, "PYTHONPATH": path, "TMPDIR": str(folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=err,
                text=True,
            )

    def __call__(self, *words: str, typed: str = "") -> Answer:
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._popen.stdin.write(json.dumps([words, typed]) + "\n")
        self._popen.stdin.flush()
        answer = self._popen.stdout.readline()
        assert answer, f"penstock {' '.join(words)} ended the process"
        return Answer(*json.loads(answer))

    def __enter__(self) -> "WarmCommand":
        return self

    def __exit__(self, *_: object) -> None:
        self._popen.communicate()  # closes its input, which ends it


def serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # keep a JVM's output out of the answers
    for line in sys.stdin:
        words, typed = json.loads(line)
        result = CliRunner().invoke(main, words, input=typed, catch_exceptions=False)
        reported = Answer(result.exit_code, result.stdout, result.stderr, result.output)
        print(json.dumps(reported), file=answers, flush=True)


if __name__ == "__main__":
    serve()
