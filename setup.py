"""The one extension, built where that is possible; everything else is in pyproject.toml.

A missing compiler or missing headers must not stop an installation: `record/walk.py` has a twin.
PENSTOCK_PURE=1 leaves the extension out on purpose.
"""

import os
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

WALK = Extension(
    "penstock.record._walk",
    ["src/penstock/record/_walk.c"],
    py_limited_api=True,
    optional=True,  # so that nobody looks for its file afterwards
)


class BuildIfPossible(build_ext):
    """A compiler that is missing shows itself in errors of any kind, so all are caught."""

    def build_extensions(self) -> None:
        try:
            super().build_extensions()
        except Exception as error:  # noqa: BLE001 - see above
            without_extension(error)

    def build_extension(self, ext: Extension) -> None:
        try:
            super().build_extension(ext)
        except Exception as error:  # noqa: BLE001 - see above
            without_extension(error)


def without_extension(error: Exception) -> None:
    print(f"penstock: records will be walked in Python, not in C: {error}", file=sys.stderr)  # noqa: T201 - where an installer looks


setup(
    ext_modules=[] if os.environ.get("PENSTOCK_PURE") == "1" else [WALK],
    cmdclass={"build_ext": BuildIfPossible},
)
