"""Identifies the machine's current boot: the page cache is lost with it, not with the broker."""

import subprocess
import sys
from pathlib import Path


def kernel_boot_id() -> str:
    """The kernel's boot id; empty where the system has none."""
    try:
        if sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
            return subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.strip()
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
