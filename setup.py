"""What is built in C, where that is possible; everything else is in pyproject.toml.

Three extensions are written in C, each with a twin in Python. The modules named under
`[tool.penstock]` are compiled by mypyc from the sources that run without it.
A missing compiler or missing headers must not stop an installation: then the sources run, and the
first line that `penstock serve` logs says so. Sources that mypyc rejects do stop it.
PENSTOCK_PURE=1 leaves both out on purpose.
"""

import os
import sys
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCES = Path("src")
SUMS = SOURCES / "penstock" / f"compiled{EXTENSION_SUFFIXES[0]}.sums"
"""Of the sources that were compiled in place: see `penstock.compiled`."""

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

    library = ""
    """The extension with the code of all compiled modules: what they need to be importable."""
    why_not = ""
    sums = ""
    read_ns = 0

    def run(self) -> None:
        in_place = self.inplace or self.editable_mode
        if in_place:
            for built in (*SOURCES.rglob("*.so"), *SUMS.parent.glob("*.sums")):
                built.unlink()  # some may be of modules that are not compiled any more
            self.build_temp = "build/objects"  # kept, so that only what changes is compiled again
        if os.environ.get("PENSTOCK_PURE") == "1":
            self.extensions = []
        else:
            self.add_compiled_modules()
        super().run()
        if in_place and self.sums and not self.why_not:
            SUMS.write_text(self.sums)
            os.utime(SUMS, ns=(self.read_ns, self.read_ns))  # what was edited since is to be seen

    def add_compiled_modules(self) -> None:
        self.read_ns = time.time_ns()
        settings = tomllib.loads(Path("pyproject.toml").read_text())
        modules = [SOURCES / "penstock" / each for each in settings["tool"]["penstock"]["compiled"]]
        self.sums = "".join(
            f"{sha256(each.read_bytes()).hexdigest()} {each.relative_to(SUMS.parent)}\n"
            for each in modules
        )
        try:
            from mypyc.build import mypycify  # what builds may lack it

            found = mypycify(
                [str(each) for each in modules],
                opt_level="2",
                debug_level="0",
                multi_file=True,
                group_name="penstock",
            )
        except SystemExit as error:  # mypyc has printed why
            told = "penstock: mypyc cannot compile the sources, for the reasons above; "
            told += "PENSTOCK_PURE=1 in the environment installs them without"
            raise SystemExit(told) from error
        except Exception as error:  # noqa: BLE001 - see above
            self.without(error)
            return
        self.library = next(each.name for each in found if each.name.endswith("__mypyc"))
        found.sort(key=lambda each: each.name != self.library)
        for each in found:
            each.optional = True
        self.distribution.ext_modules = [*EXTENSIONS, *found]
        self.swig_opts = None  # else it would be split a second time
        self.finalize_options()

    def build_extensions(self) -> None:
        try:
            self.compiler.compile = in_parallel(self.compiler.compile)
            super().build_extensions()
        except Exception as error:  # noqa: BLE001 - see above
            self.without(error)

    def build_extension(self, ext: Extension) -> None:
        is_written_in_c = ext.name in {each.name for each in EXTENSIONS}
        if self.why_not and not is_written_in_c:
            return  # a module without the library could not be imported at all
        try:
            super().build_extension(ext)
        except Exception as error:  # noqa: BLE001 - see above
            self.without(error)

    def without(self, error: BaseException) -> None:
        if not self.why_not:
            told = f"penstock: records will be handled in Python, not in C: {error}"
            print(told, file=sys.stderr)  # noqa: T201 - where an installer looks
        self.why_not = str(error)


def in_parallel(compile_all: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Compile the sources of an extension on all cores, but those that are compiled already."""

    def compiled(
        sources: list[str], *, output_dir: str, depends: list[str], **options: Any
    ) -> list[str]:
        newest = max((Path(each).stat().st_mtime_ns for each in depends), default=0)

        def one(source: str) -> str:
            made = Path(output_dir, source).with_suffix(".o")
            needed = max(newest, Path(source).stat().st_mtime_ns)
            if made.exists() and made.stat().st_mtime_ns > needed:
                return str(made)
            return compile_all([source], output_dir=output_dir, **options)[0]

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(one, sources))

    return compiled


# A pure wheel names no extension, so that it is for every platform. An installation in place runs
# `build_ext` also then, to remove what was built before.
IS_PURE_WHEEL = os.environ.get("PENSTOCK_PURE") == "1" and "editable_wheel" not in sys.argv

setup(
    ext_modules=[] if IS_PURE_WHEEL else EXTENSIONS,
    cmdclass={"build_ext": BuildIfPossible},
)
