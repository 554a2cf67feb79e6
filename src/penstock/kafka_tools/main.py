"""Runs the tool of a script; any error becomes a sentence and exit code 1."""

import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress

from penstock import __version__
from penstock.kafka_tools.options import HELP, VERSION
from penstock.kafka_tools.parser import UsageError, parse
from penstock.kafka_tools.table import MISTAKEN, MODULES, tool
from penstock.kafka_tools.tool import Tool, ToolError
from penstock.kafka_tools.usage import usage

INTERRUPTED = 130
RUN_CLASS, SHELL = "kafka-run-class", "zookeeper-shell"
"""Tools whose arguments are passed on to something else, without an option table."""


def main(script: str, words: Sequence[str]) -> int:
    """Run the tool of a script such as `kafka-topics.sh`; returns the exit code."""
    name = script.rpartition("/")[2].removesuffix(".sh")
    if name not in MODULES:
        return _unknown(name, words)
    called = tool(name)
    try:
        if name == RUN_CLASS and words:
            return _run_class(words)
        if name == SHELL:
            from penstock.kafka_tools.zookeeper_shell import shell

            return shell(words)
        code = _run(called, words)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _misused(called, error)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        _drop_output()
        return 0
    except Exception as error:  # noqa: BLE001  the boundary around every tool
        return _failed(called, error, words)


def _run_class(words: Sequence[str]) -> int:
    """Run the tool of a class name, which may follow options of the Java process."""
    from penstock.kafka_tools.run_class import tool_of

    rest = list(words)
    while rest and rest[0] in {"-daemon", "-name", "-loggc"}:
        del rest[: 2 if rest[0] == "-name" else 1]
    if not rest:
        raise UsageError("kafka-run-class.sh: no class is named")
    return main(tool_of(rest[0]), rest[1:])


def _run(called: Tool, words: Sequence[str]) -> int:
    args = parse(called.table, words)
    if args.has(HELP.name):
        raise UsageError("")
    if args.has(VERSION.name):
        print(f"{__version__} (Penstock)")
        return 0
    return called.run(args)


def _unknown(name: str, words: Sequence[str]) -> int:
    from difflib import get_close_matches  # late: only needed for a mistake

    nearest = [MISTAKEN[name]] if name in MISTAKEN else get_close_matches(name, MODULES, n=1)
    print(f"{name}.sh: there is no such tool", end="", file=sys.stderr)
    if nearest:
        print(f"; did you mean {nearest[0]}.sh?", file=sys.stderr)
        print(f"  {nearest[0]}.sh {shlex.join(words)}".rstrip(), file=sys.stderr)
    else:
        print(f"; there are {', '.join(f'{each}.sh' for each in MODULES)}", file=sys.stderr)
    return 1


def _misused(called: Tool, error: UsageError) -> int:
    """Print the error of a wrong command line, and the corrected line if it can be
    guessed, else help.
    """
    if str(error):
        print(error, file=sys.stderr)
    if error.meant is not None:
        print(f"  {called.table.name}.sh {shlex.join(error.meant)}", file=sys.stderr)
    else:
        print(usage(called.table), file=sys.stderr)
    return 1


def _failed(called: Tool, raised: Exception, words: Sequence[str]) -> int:
    from penstock.cli.failure import (  # late: it imports click
        EXPECTED,
        InternalError,
        cause,
        sentence,
        ungrouped,
    )

    error = cause(ungrouped(raised))
    if not isinstance(error, (*EXPECTED, ToolError)):
        error = InternalError(error)
    elif isinstance(error, OSError):
        error = type(error)(sentence(error))
    message = called.failed(error, words)
    try:
        if called.failed_on_stdout:
            print(message)
        sys.stdout.flush()
        is_told = called.failed_on_stdout
    except OSError:  # the disk is full or the pipe closed; buffered output is lost
        _drop_output()
        is_told = False
    if not is_told:
        with suppress(OSError):
            print(message, file=sys.stderr)
    return 1


def _drop_output() -> None:
    """Redirect standard output to the null device, or the interpreter would print a
    traceback at exit.
    """
    import os

    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
