"""Log lines at the start of a broker: version, paths, settings, addresses."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from penstock import __version__
from penstock.broker.startup.state_file import BrokerState
from penstock.compiled import is_compiled
from penstock.config.broker import declared_setting
from penstock.config.sources import Resolved, SettingSource


def starting(resolved: Resolved, directory: Path) -> Iterator[str]:
    """Logged before anything is opened, so that an operator sees the intended configuration."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    build = "compiled" if is_compiled() else "not compiled"
    system = platform.platform()
    yield f"Penstock {__version__} starts (pid {os.getpid()}, {build}, {python}, {system})"
    logs = ", ".join(str(Path(each).absolute()) for each in resolved.config.identity.directories)
    yield f"data directory {directory.absolute()}, log directories {logs}"
    for name, given in sorted(resolved.given.items()):
        if given.source is not SettingSource.DEFAULT:
            declared = declared_setting(name)
            shown = "[hidden]" if declared is None or declared.sensitive else given.text
            yield f"{name}={shown} ({given.origin})"


def serving(state: BrokerState) -> str:
    listeners = ", ".join(f"{name}://{address}" for name, address in state.listeners.items())
    http = f"HTTP at {state.http}" if state.http else "no HTTP"
    return f"broker {state.broker_id} of cluster {state.cluster_id} serves {listeners}; {http}"
