"""Which Python figures belong to, and whether it was built to be fast."""

import platform
import sys
import sysconfig

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
