"""How a command ends: the exit codes, and what says why on standard error.

Commands raise what they ran into; which code that is, is decided here alone.
"""

from collections.abc import Sequence
from enum import IntEnum
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
    ExitCode.FAILED: "The operation failed: a broker said no, or files are damaged.",
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

    def __init__(self, refusals: Sequence[KafkaError], asked: int) -> None:
        super().__init__("; ".join(map(str, refusals)))
        self.refusals, self.asked = refusals, asked


FAILURES: Final = (ConfigError, KafkaError, ProtocolError, StorageError, SomeFailed)
"""All else is a bug."""


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
        case _:
            return ExitCode.FAILED


def alone(error: Exception) -> Exception:
    """What a task group has wrapped, where it is the only thing that went wrong."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        (error,) = error.exceptions
    return error


def tell(error: Exception, *, as_json: bool) -> None:
    """A line for each thing that failed, or a JSON object."""
    for each in error.refusals if isinstance(error, SomeFailed) else [error]:
        click.echo(_object(each) if as_json else f"penstock: {each}", err=True)


def _object(error: Exception) -> str:
    import json  # only here: `penstock --help` is to be quick

    name, code = type(error).__name__, None
    if isinstance(error, KafkaError):
        name, code = error.code.name, error.code.value
    return json.dumps({"error": name, "code": code, "message": str(error)}, ensure_ascii=False)
