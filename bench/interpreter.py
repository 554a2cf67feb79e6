"""Which Python figures belong to, and whether it was built to be fast."""

import os
import platform
import sys
import sysconfig
from datetime import UTC, datetime

from penstock.compiled import is_compiled


def is_optimised() -> bool:
    """Whether Python was built with what its own profile says (PGO): worth a tenth of the CPU.

    Distributions build theirs so, without a word of it in what Python was configured with.
    """
    configured = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return "--enable-optimizations" in configured or sys.base_prefix == "/usr"


def described() -> str:
    """A line to stand above figures, and another if they could be better."""
    form = "compiled" if is_compiled() else "as Python source"
    name = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    line = f"{name}, {'' if is_optimised() else 'not '}built with optimisations; penstock {form}"
    if is_optimised():
        return line
    return (
        f"{line}\nwarning: a Python built with --enable-optimizations, such as Debian's, "
        "takes 6 to 13 % less CPU; PYTHON=... chooses it for `make setup`"
    )


def about() -> dict[str, object]:
    """What figures belong to: the machine, its load by others, the interpreter, and the day."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "memory GB": round(memory / 1e9),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "load average": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "optimised": is_optimised(),
        "compiled": is_compiled(),
    }
