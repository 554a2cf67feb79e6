"""Installs each artefact in dist/ into an empty environment of each Python, and uses it.

The core's dependencies are installed by hash; `pip check` verifies that they satisfy the wheel's
requirements. Then the quick start runs (serve, create, produce, consume, stop), and, after pytest
is installed, a test that uses the plugin. Nothing of this clone is on the path.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from scripts.pins import hashed_requirements

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
TEST = """
def test_a_topic_of_its_own(broker):
    broker.create_topic("events", 3)
    assert broker.bootstrap.startswith("127.0.0.1:")
"""


def run(*words: str | Path, given: str = "", cwd: Path, **more: str) -> str:
    environ = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("PENSTOCK_", "KAFKA_", "PYTHON"))
    }
    done = subprocess.run(
        words,
        cwd=cwd,
        env=environ | more,
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        reported = done.stdout + done.stderr
        sys.exit(f"try_dist: {' '.join(map(str, words))} failed:\n{reported[-4000:]}")
    return done.stdout


def tried(python: Path, artefact: Path) -> str:
    """The installed Penstock's version, and whether it is compiled."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    with tempfile.TemporaryDirectory(prefix="penstock-try-") as name:
        folder = Path(name)
        run(python, "-m", "venv", "venv", cwd=folder)
        bin_folder = folder / "venv" / "bin"
        pip = [str(bin_folder / "python"), "-m", "pip", "--quiet"]

        def install(requirements: list[str]) -> None:
            wanted = folder / "requirements.txt"
            wanted.write_text(hashed_requirements(requirements))
            run(*pip, "install", "--require-hashes", "-r", wanted, cwd=folder)

        install(project["dependencies"])
        if artefact.suffix == ".whl":
            run(*pip, "install", "--no-deps", "--no-index", artefact, cwd=folder)
        else:  # the source archive, not compiled here: the compiled wheels are built from it
            install(["setuptools"])
            alone = ["--no-deps", "--no-index", "--no-build-isolation"]
            run(*pip, "install", *alone, artefact, cwd=folder, PENSTOCK_PURE="1")
        run(*pip, "check", cwd=folder)
        reported = quick_start(bin_folder, folder)
        install(["pytest"])
        (folder / "test_plugin.py").write_text(TEST)
        run(bin_folder / "python", "-m", "pytest", "-q", "test_plugin.py", cwd=folder)
        return reported


def quick_start(bin_folder: Path, folder: Path) -> str:
    penstock = bin_folder / "penstock"
    run(penstock, "serve", "--daemon", "--port", "0", cwd=folder)
    data = ["--dir", "penstock-data"]
    try:
        run(penstock, "topic", "create", "events", *data, cwd=folder)
        run(penstock, "produce", "events", *data, given="hello\n", cwd=folder)
        read = run(penstock, "consume", "events", *data, cwd=folder)
        if read != "hello\n":
            sys.exit(f"try_dist: consumed {read!r}")
    finally:
        run(penstock, "stop", *data, cwd=folder)
    asks = "from penstock.compiled import is_compiled as c; print('compiled' if c() else 'pure')"
    how = run(bin_folder / "python", "-c", asks, cwd=folder).strip()
    return f"{run(penstock, '--version', cwd=folder).strip()}, {how}"


def main() -> None:
    for python in map(Path, sys.argv[1:]):
        asks = "import sys; print(f'cp{sys.version_info[0]}{sys.version_info[1]}')"
        tag = run(python, "-c", asks, cwd=ROOT).strip()
        for artefact in sorted(DIST.glob("penstock-*")):
            is_compiled = artefact.suffix == ".whl" and "-none-any" not in artefact.name
            if artefact.suffix not in {".whl", ".gz"} or (is_compiled and tag not in artefact.name):
                continue
            reported = tried(python, artefact)
            if is_compiled != reported.endswith("compiled"):
                sys.exit(f"try_dist: {artefact.name} runs as {reported}")
            print(f"try_dist: {tag} {artefact.name}: {reported}", flush=True)


if __name__ == "__main__":
    main()
