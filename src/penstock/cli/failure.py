"""How a command fails: its exit code, and the error on standard error.

Commands raise errors; only this module maps them to exit codes.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from errno import EBADF, EDQUOT, EFBIG, EIO, ENOENT, ENOSPC
from typing import Final

import click

from penstock.errors import ConfigError, ErrorCode, KafkaError, ProtocolError, StorageError


class ExitCode(IntEnum):
    """Exit codes, for scripts."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    UNAUTHORIZED = 4
    PARTLY_DONE = 5
    INTERRUPTED = 130


MEANINGS: Final = {
    ExitCode.DONE: "Done.",
    ExitCode.FAILED: "The operation failed: rejected by a broker, damaged files, a full disk.",
    ExitCode.USAGE: "A wrong argument or setting; nothing was done.",
    ExitCode.UNREACHABLE: "No connection, or no response in time.",
    ExitCode.UNAUTHORIZED: "Authentication or authorization failed.",
    ExitCode.PARTLY_DONE: "Some of several operations failed.",
    ExitCode.INTERRUPTED: "Interrupted by Ctrl-C.",
}

EXIT_CODES: Final = {
    ErrorCode.NETWORK_EXCEPTION: ExitCode.UNREACHABLE,
    ErrorCode.REQUEST_TIMED_OUT: ExitCode.UNREACHABLE,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: ExitCode.UNAUTHORIZED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: ExitCode.UNAUTHORIZED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: ExitCode.UNAUTHORIZED,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: ExitCode.UNAUTHORIZED,
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: ExitCode.UNAUTHORIZED,
    ErrorCode.SASL_AUTHENTICATION_FAILED: ExitCode.UNAUTHORIZED,
}
"""Kafka's errors with an exit code of their own."""


class SomeFailed(Exception):
    """Some or all of several operations failed."""

    def __init__(self, errors: Sequence[Exception], attempted: int) -> None:
        super().__init__("; ".join(map(str, errors)))
        self.errors, self.attempted = errors, attempted


EXPECTED: Final = (
    ConfigError,
    KafkaError,
    ProtocolError,
    StorageError,
    SomeFailed,
    OSError,
    click.ClickException,
)
"""Errors that a command may raise. All others are bugs."""


def exit_code(error: Exception) -> ExitCode:
    match error:
        case ConfigError():
            return ExitCode.USAGE
        case KafkaError():
            return EXIT_CODES.get(error.code, ExitCode.FAILED)
        case SomeFailed() if len(error.errors) < error.attempted:
            return ExitCode.PARTLY_DONE
        case SomeFailed():
            return exit_code(error.errors[0])
        case click.ClickException():
            return ExitCode(error.exit_code)
        case _:
            return ExitCode.FAILED


def ungrouped(error: Exception) -> Exception:
    """The cause in a task group's error: a bug if there is one, else the first expected failure."""
    if not isinstance(error, ExceptionGroup):
        return error
    causes = [ungrouped(each) for each in error.exceptions]
    return min(causes, key=lambda each: isinstance(each, EXPECTED))


def cause(error: Exception) -> Exception:
    """The underlying cause of an error.

    If the working directory was deleted, that is why files are not found; errors from a broker have
    other causes. Python holds arguments that are not UTF-8 as surrogates, which cannot be encoded.
    """
    if isinstance(error, UnicodeEncodeError) and error.reason == "surrogates not allowed":
        return ConfigError(f"{error.object[:100]!a} is not UTF-8")
    if isinstance(error, KafkaError | ProtocolError | BrokenPipeError):
        return error
    try:
        os.getcwd()  # noqa: PTH109  pathlib's imports more
    except FileNotFoundError as gone:
        return gone
    return error


def is_closed_pipe(error: Exception) -> bool:
    """Whether the reader closed our output, as `head` does."""
    return isinstance(error, BrokenPipeError)


def report_error(error: Exception, *, as_json: bool) -> None:
    """Print a line or a JSON object for each error. The traceback of a bug goes to a file."""
    if not isinstance(error, EXPECTED):
        error = InternalError(error)
    with suppress(OSError):  # standard error may be closed, or its disk full
        for each in error.errors if isinstance(error, SomeFailed) else [error]:
            click.echo(_object(each) if as_json else f"penstock: {sentence(each)}", err=True)


class InternalError(Exception):
    """A bug: the user sees one sentence; the traceback is in a file."""

    def __init__(self, bug: Exception) -> None:
        what = f"{type(bug).__name__}: {bug}".rstrip(": ").partition("\n")[0]
        report = _written_traceback(bug)
        advice = "" if report is None else f"; please report it with {report}"
        super().__init__(f"internal error: {what}{advice}")


def _written_traceback(bug: Exception) -> str | None:
    import tempfile  # late, as in `_object`
    import traceback

    try:
        number, path = tempfile.mkstemp(prefix="penstock-error-", suffix=".txt")
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(bug))
    except OSError:
        return None
    return path


def sentence(error: Exception) -> str:
    if not isinstance(error, OSError):
        return error.format_message() if isinstance(error, click.ClickException) else str(error)
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{_text(error.filename)}: {reason}"
    if error.errno == EBADF:
        return "cannot write the output: standard output is closed"
    if error.errno in {ENOSPC, EDQUOT, EFBIG, EIO}:
        return f"cannot write the output: {reason}"
    if error.errno == ENOENT:
        return "the working directory was deleted: change to one that exists"
    return reason


def _text(path: object) -> str:
    return path.decode(errors="replace") if isinstance(path, bytes) else str(path)


def fill_closed_streams() -> None:
    """Open the null device where standard input, output or error was closed (`>&-`).

    Otherwise the next file opened, such as a segment, gets the descriptor of standard output or
    error, and output of a library or child process is written into it. Output is opened for reading
    only, so that a command that prints its result fails instead of losing it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDONLY if number == 1 else os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  for good
            setattr(sys, name, stream)


def flush_output() -> None:
    """Flush standard output and error, or drop what cannot be written.

    Otherwise the interpreter would try again at exit, and print a traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            with suppress(OSError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)
            if stream is sys.stdout:
                raise error


def _object(error: Exception) -> str:
    import json  # late: keeps `penstock --help` fast

    name, code = type(error).__name__, None
    if isinstance(error, KafkaError):
        name, code = error.code.name, error.code.value
    message = sentence(error)
    return json.dumps({"error": name, "code": code, "message": message}, ensure_ascii=False)
