"""Which start of the machine this is: a restart of the broker alone loses no page cache."""

import subprocess
import sys
from pathlib import Path


def kernel_boot_id() -> str:
    """Empty where the system does not tell."""
    try:
        if sys.platform == "darwin":
            command = ["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"]
            return subprocess.run(
                command, capture_output=True, text=True, check=True
            ).stdout.strip()
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
