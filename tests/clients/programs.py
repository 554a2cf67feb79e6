"""The programs of the clients in other languages, as `scripts/install-peers` built them."""

import hashlib
from pathlib import Path

from peers.jars import NotInstalledError, cache, program
from peers.java import source_command

HERE = Path(__file__).parent


def java_program() -> list[str]:
    """The command of the official client, compiled if necessary."""
    return source_command("Client", jars="clients-4.4.0")


def go_program(name: str, folder: Path = HERE / "go") -> list[str]:
    """The command of a program in a Go module, built from its present sources."""
    sources = sorted(folder.rglob("*.*"), key=str)
    wanted = [path for path in sources if path.suffix in {".go", ".mod", ".sum"}]
    return [str(_installed(folder.name, wanted) / name)]


def node_program(name: str, script: str = "main.js") -> list[str]:
    """The command of `<name>/<script>`, with the modules of its `package.json`."""
    folder = _installed(name, [HERE / name / "package.json"])
    modules = f"NODE_PATH={folder / 'node_modules'}"
    return [program("env"), modules, program("node"), str(HERE / name / script)]


def _installed(name: str, sources: list[Path]) -> Path:
    """The folder named after the hash of these files; the installer computes the same name."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    folder = cache() / "clients" / f"{name}-{digest[:16]}"
    if not folder.is_dir():
        raise NotInstalledError(f"the client {name} in its present form")
    return folder
