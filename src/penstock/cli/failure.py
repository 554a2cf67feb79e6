"""How a command ends: the exit codes, and what says why on standard error.

Commands raise what they ran into; which code that is, is decided here alone.
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import IntEnum
from errno import EDQUOT, EFBIG, EIO, ENOENT, ENOSPC
from typing import Final

import click

from penstock.errors import ConfigError, ErrorCode, KafkaError, ProtocolError, StorageError


class ExitCode(IntEnum):
    """What scripts go by."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    UNREACHABLE = 3
    UNAUTHORIZED = 4
    PARTLY_DONE = 5
    INTERRUPTED = 130


MEANINGS: Final = {
    ExitCode.DONE: "Done.",
    ExitCode.FAILED: "The operation failed: a broker said no, files are damaged, a disk is full.",
    ExitCode.USAGE: "A wrong call or setting: nothing was tried.",
    ExitCode.UNREACHABLE: "No connection, or no answer in time.",
    ExitCode.UNAUTHORIZED: "Who asked is not known, or may not do this.",
    ExitCode.PARTLY_DONE: "Of several things some were done, others were not.",
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
"""Kafka's errors that are more than a plain failure."""

FORMAT_KEY: Final = "penstock.format"
"""Where in click's context a command's --format is, for the one who shows its failure."""


class SomeFailed(Exception):
    """Of several things that were asked for at once, these were refused."""

    def __init__(self, refusals: Sequence[Exception], asked: int) -> None:
        super().__init__("; ".join(map(str, refusals)))
        self.refusals, self.asked = refusals, asked


EXPECTED: Final = (
    ConfigError,
    KafkaError,
    ProtocolError,
    StorageError,
    SomeFailed,
    OSError,
    click.ClickException,
)
"""What a command may run into. All else is a bug."""


def exit_code(error: Exception) -> ExitCode:
    match error:
        case ConfigError():
            return ExitCode.USAGE
        case KafkaError():
            return EXIT_CODES.get(error.code, ExitCode.FAILED)
        case SomeFailed() if len(error.refusals) < error.asked:
            return ExitCode.PARTLY_DONE
        case SomeFailed():
            return exit_code(error.refusals[0])
        case click.ClickException():
            return ExitCode(error.exit_code)
        case _:
            return ExitCode.FAILED


def alone(error: Exception) -> Exception:
    """The cause inside a task group's error: a bug if there is any, else the first failure."""
    if not isinstance(error, ExceptionGroup):
        return error
    causes = [alone(each) for each in error.exceptions]
    return min(causes, key=lambda each: isinstance(each, EXPECTED))


def cause(error: Exception) -> Exception:
    """The deleted working folder, if there is one: files were not found because of it.

    A broker's refusal has nothing to do with it. Words of the call that are no UTF-8 are a cause
    as well: Python holds their bytes as surrogates, which cannot be sent.
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
    """The reader of our output has left, as `head` does when it has seen enough."""
    return isinstance(error, BrokenPipeError)


def tell(error: Exception, *, as_json: bool) -> None:
    """Print a line for each thing that failed, or a JSON object. A traceback goes to a file."""
    if not isinstance(error, EXPECTED):
        error = InternalError(error)
    with suppress(OSError):  # standard error may be closed, or its disk full
        for each in error.refusals if isinstance(error, SomeFailed) else [error]:
            click.echo(_object(each) if as_json else f"penstock: {sentence(each)}", err=True)


class InternalError(Exception):
    """A bug: the user sees one sentence, and the developer gets the traceback from a file."""

    def __init__(self, bug: Exception) -> None:
        what = f"{type(bug).__name__}: {bug}".rstrip(": ").partition("\n")[0]
        report = _written_traceback(bug)
        where = "" if report is None else f"; please report it with {report}"
        super().__init__(f"internal error: {what}{where}")


def _written_traceback(bug: Exception) -> str | None:
    import tempfile  # only here, as in `_object`
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
    if error.errno in {ENOSPC, EDQUOT, EFBIG, EIO}:
        return f"cannot write the output: {reason}"
    if error.errno == ENOENT:
        return "the working folder is gone: change to one that exists"
    return reason


def _text(path: object) -> str:
    return path.decode(errors="replace") if isinstance(path, bytes) else str(path)


def fill_closed_streams() -> None:
    """Open the null device where standard input, output or error was closed (`>&-`).

    Otherwise the next file that is opened, such as a segment, gets the number of standard output or
    error, and what a library or a child process prints is written into it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)  # the lowest free number
            if null != number:
                os.dup2(null, number)
                os.close(null)
            os.set_inheritable(number, True)
        if getattr(sys, name) is None:
            stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  for good
            setattr(sys, name, stream)


def flush_output() -> None:
    """Write out what is left for standard output, or drop it if that is impossible.

    The interpreter would try once more at its end, and print a traceback.
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
    import json  # only here: `penstock --help` is to be quick

    name, code = type(error).__name__, None
    if isinstance(error, KafkaError):
        name, code = error.code.name, error.code.value
    message = sentence(error)
    return json.dumps({"error": name, "code": code, "message": message}, ensure_ascii=False)
