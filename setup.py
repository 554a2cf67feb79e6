"""The extensions, built where that is possible; everything else is in pyproject.toml.

A missing compiler or missing headers must not stop an installation: each has a twin in Python.
PENSTOCK_PURE=1 leaves them out on purpose.
"""

import os
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

EXTENSIONS = [
    Extension(
        name,
        [f"src/{name.replace('.', '/')}.c"],
        depends=["src/penstock/spark/decode/_crc32c.h"],
        py_limited_api=True,
        optional=True,  # so that nobody looks for its file afterwards
    )
    for name in (
        "penstock.record._walk",
        "penstock.spark.sink._encode",
        "penstock.spark.decode._fill",
    )
]


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
    print(f"penstock: records will be handled in Python, not in C: {error}", file=sys.stderr)  # noqa: T201 - where an installer looks


setup(
    ext_modules=[] if os.environ.get("PENSTOCK_PURE") == "1" else EXTENSIONS,
    cmdclass={"build_ext": BuildIfPossible},
)
