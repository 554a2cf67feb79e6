"""The Python and the machine that figures were measured with."""

import os
import platform
import sys
import sysconfig
from datetime import UTC, datetime

from penstock.compiled import is_compiled


def is_optimised() -> bool:
    """Whether Python was built with profile-guided optimisation (PGO), which saves a tenth of the
    CPU.

    Distributions' builds have it too, although their CONFIG_ARGS may not say so.
    """
    configured = str(sysconfig.get_config_var("CONFIG_ARGS") or "")
    return "--enable-optimizations" in configured or sys.base_prefix == "/usr"


def described() -> str:
    """A line to print above figures, and a warning if another Python would be faster."""
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
    """What figures depend on: the machine and its load by others, the interpreter, the date."""
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
