"""The start time of a process, which tells it from a later process with the same pid."""

import subprocess
from pathlib import Path

ZOMBIE = "Z"


def process_start(pid: int) -> str | None:
    """The start time in the system's own unit; None if the process has ended.

    A zombie has ended. It may never be reaped, such as in a container whose PID 1 is not an init.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self").exists() else _by_ps(pid)
    return None if fields[0] == ZOMBIE else fields[19]


def _by_ps(pid: int) -> str | None:
    shown = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    state, _, start = shown.stdout.strip().partition(" ")
    return None if state.startswith(ZOMBIE) else start.strip() or None
