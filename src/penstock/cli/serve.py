"""`penstock serve`: a broker in the foreground, or with --daemon behind the terminal."""

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click

from penstock.broker.app import new_event_loop, running
from penstock.broker.state_file import read_state, remove_state, write_state
from penstock.cli.logging import start_logging
from penstock.config.sources import Resolved, resolve
from penstock.errors import ConfigError

DAEMON_START_S = 30.0
SWITCH_INTERVAL_S = 0.0002
"""A thread that comes back from an fsync gives the interpreter up sooner than by default; a busy
one would cost the loop most of its rate otherwise.
"""


@click.command()
@click.argument(
    "properties", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option("--port", type=click.IntRange(0, 65535), help="Port of the client listener. [9092]")
@click.option("--host", help="Address of the client listener. [127.0.0.1]")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("penstock-data"),
    show_default=True,
    help="Where metadata, state and, unless log.dirs says otherwise, logs are kept.",
)
@click.option(
    "--set", "pairs", multiple=True, metavar="KEY=VALUE", help="A setting; wins over all."
)
@click.option("--profile", help="A set of defaults, such as classic.")
@click.option("--strict", is_flag=True, help="Refuse unknown settings instead of warning.")
@click.option("--log-level", default="info", show_default=True)
@click.option("--log-format", type=click.Choice(["plain", "json"]), default="plain")
@click.option("--daemon", is_flag=True, help="Return once it is ready; stop with `penstock stop`.")
def serve(
    properties: Path | None,
    port: int | None,
    host: str | None,
    directory: Path,
    pairs: tuple[str, ...],
    profile: str | None,
    strict: bool,
    log_level: str,
    log_format: str,
    daemon: bool,
) -> None:
    """Run a broker until SIGTERM or SIGINT.

    When it accepts requests it prints `ready HOST:PORT`, and DIR/broker.json tells its process,
    listeners and HTTP address.
    """
    if host is not None or port is not None:
        address = f"{host or '127.0.0.1'}:{9092 if port is None else port}"
        pairs = (f"listeners=PLAINTEXT://{address}", *pairs)
    resolved = resolve(
        # A broker without a word about it serves this machine only, from its directory.
        defaults={
            "listeners": "PLAINTEXT://127.0.0.1:9092",
            "log.dir": str((directory / "logs").absolute()),
        },
        file=properties,
        profile=profile,
        environ=os.environ,
        pairs=pairs,
        strict=strict,
    )
    if daemon:
        start_daemon(directory)
        return
    start_logging(log_level, log_format)
    for warning in resolved.warnings:
        click.echo(f"penstock: warning: {warning}", err=True)
    run(resolved, directory)


def run(resolved: Resolved, directory: Path) -> None:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(until_stopped(resolved, directory))


async def until_stopped(resolved: Resolved, directory: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    async with running(resolved, directory) as broker:
        gc.collect()
        gc.freeze()  # what start-up made stays: no collection has to look at it again
        write_state(directory, broker.state)
        click.echo(f"ready {broker.state.bootstrap}")
        sys.stdout.flush()
        await stop.wait()
        remove_state(directory)


def start_daemon(directory: Path) -> None:
    """Start the same command without --daemon, in a session of its own, and wait for it."""
    directory.mkdir(parents=True, exist_ok=True)
    arguments = [word for word in sys.argv[1:] if word != "--daemon"]
    with (directory / "penstock.log").open("ab") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "penstock", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            start_new_session=True,
        )
    for _ in waiting(DAEMON_START_S):
        state = read_state(directory)
        if state is not None and state.pid == started.pid:
            click.echo(f"ready {state.bootstrap}")
            return
        if started.poll() is not None:
            break
    lines = (directory / "penstock.log").read_text(errors="replace").splitlines()
    raise ConfigError(f"the broker did not start: {lines[-1] if lines else 'it said nothing'}")


def waiting(seconds: float) -> Iterator[None]:
    """Turns of a wait for another process, which tells us nothing when it is ready."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
        time.sleep(0.02)


def stop_broker(directory: Path, seconds: float) -> None:
    state = read_state(directory)
    if state is None:
        raise ConfigError(f"{directory}: no broker runs here (there is no broker.json)")
    with contextlib.suppress(ProcessLookupError):
        os.kill(state.pid, signal.SIGTERM)
        for _ in waiting(seconds):
            os.kill(state.pid, 0)
        raise ConfigError(f"the broker (pid {state.pid}) does not stop")
    remove_state(directory)
