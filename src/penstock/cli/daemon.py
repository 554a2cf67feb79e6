"""A broker in the background: started by `serve --daemon`, stopped by `penstock stop`."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from penstock.broker.machine import make_directory
from penstock.broker.startup.state_file import (
    is_held,
    read_state,
    remove_state,
    unfound_broker,
)
from penstock.cli.output import notice
from penstock.errors import ConfigError, ErrorCode, KafkaError
from penstock.local.process import last_line, polls

START_S = 30.0
LOG_NAME = "penstock.log"


class NotInTime(KafkaError):
    """The broker neither failed nor finished starting or stopping in time."""

    code = ErrorCode.REQUEST_TIMED_OUT


def start_daemon(directory: Path, log_file: Path | None, warnings: Sequence[str]) -> None:
    """Run the same command without --daemon in a new session, and wait until it is ready."""
    make_directory(directory)
    for warning in warnings:
        click.echo(f"penstock: warning: {warning}", err=True)
    arguments = [word for word in sys.argv[1:] if word != "--daemon"]
    path = log_file or directory / LOG_NAME
    if log_file is None:
        arguments += ["--log-file", str(path)]
    try:
        log = path.open("ab")
    except OSError as error:
        option = "--dir" if log_file is None else "--log-file"
        raise ConfigError(f"{option}: {path} cannot be written: {error.strerror}") from None
    with log:
        before = log.tell()
        started = subprocess.Popen(
            [sys.executable, "-P", "-m", "penstock", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    for _ in polls(START_S):
        state = read_state(directory)
        if state is not None and state.pid == started.pid:
            notice(f"ready {state.bootstrap}")
            return
        if started.poll() is not None:
            why = last_line(path, before, is_shared=True)
            raise ConfigError(f"the broker did not start: {why} (see {path})")
    raise NotInTime(
        f"the broker (pid {started.pid}) is not ready after {START_S:.0f} s; it is still "
        f"starting, perhaps recovering its logs: see {path}"
    )


def stop_broker(directory: Path, seconds: float) -> None:
    """Stop the broker of a directory, but never another process that has its pid by now."""
    state = read_state(directory)
    if state is None or not is_held(directory):
        raise ConfigError(unfound_broker(directory))
    try:
        os.kill(state.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it ended by itself in the meantime
    except PermissionError:
        raise ConfigError(
            f"the broker (pid {state.pid}) belongs to another user: stop it as that user"
        ) from None
    for _ in polls(seconds):
        if not state.is_alive():
            remove_state(directory, state)
            return
    raise NotInTime(f"the broker (pid {state.pid}) has not stopped within {seconds:g} s")
