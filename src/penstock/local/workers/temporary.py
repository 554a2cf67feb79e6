"""Workers for tests, which end with the process that started them."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from penstock.broker.startup.state_file import BrokerState, read_state
from penstock.errors import ConfigError
from penstock.local.process import end, last_line, polls, start

START_S, STOP_S = 60.0, 60.0
OUTPUT = "output"


@contextmanager
def temporary_workers(
    directory: Path, workers: int, settings: Mapping[str, str]
) -> Iterator[BrokerState]:
    """Run workers on free ports; at the end they stop cleanly and leave their data."""
    output = directory / OUTPUT
    command = [sys.executable, "-P", "-m", "penstock", "serve", "--strict", "--port", "0"]
    command += ["--dir", str(directory), "--workers", str(workers)]
    for name, text in settings.items():
        command += ["--set", f"{name}={text}"]
    before = output.stat().st_size if output.exists() else 0
    started = start(command, output, tied=True)
    try:
        for _ in polls(START_S):
            state = read_state(directory)
            if state is not None and state.pid == started.pid:
                yield state
                return
            if not started.is_alive():
                raise ConfigError(last_line(output, before))
        raise ConfigError(f"the workers were not ready within {START_S:.0f} s (see {output})")
    finally:
        end(started, kill=False, patience_s=STOP_S)
