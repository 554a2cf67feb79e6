"""Runs atheris on one target: `PYTHONPATH=src:tests python -m fuzz wire -max_total_time=60`.

Only Penstock's own functions are instrumented: those of all libraries together take a minute.
"""

import gc
import importlib
import logging
import sys
from types import FunctionType

import atheris


def main() -> None:
    _, name, *options = sys.argv
    logging.disable()  # a broker's log about damaged input would fill the terminal
    target = importlib.import_module(f"fuzz.{name}_target")
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and str(each.__module__).startswith("penstock."):
            atheris.instrument_func(each)
    atheris.Setup([sys.argv[0], *options], getattr(target, f"fuzz_{name}"))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
