"""A real PostgreSQL on loopback, in a folder of its own."""

import os
import pwd
import shutil
import subprocess
import time
from pathlib import Path

from peers.jars import NotInstalledError
from peers.process import PeerError, Process, free_ports
from peers.servers import Servers

DEBIAN = Path("/usr/lib/postgresql")
IN_USE = "pre-existing shared memory block"


class Postgres(Servers):
    """`with Postgres() as postgres: postgres.url`; it refuses to run as root, so another user runs
    it.
    """

    def __init__(self, folder: Path | None = None, timeout_s: float = 60) -> None:
        super().__init__(folder, timeout_s)
        (self._port,) = free_ports(1)

    @property
    def url(self) -> str:
        return f"postgresql://penstock@127.0.0.1:{self._port}/postgres"

    def start(self, *numbers: int) -> None:
        """Retries while processes of a killed server have not noticed its death yet."""
        until_s = time.monotonic() + self._timeout_s
        while True:
            try:
                super().start(*numbers)
            except PeerError as error:
                if IN_USE not in str(error) or time.monotonic() > until_s:
                    raise
                time.sleep(0.2)
            else:
                return

    def _answers(self, number: int) -> bool:
        said = self.output(number).read_text(errors="replace")
        return "database system is ready to accept connections" in said

    def _prepared(self) -> dict[int, Process]:
        folder = self.folder / "postgres"
        folder.mkdir(parents=True, exist_ok=True)
        data = folder / "data"
        if os.geteuid() == 0:
            self.folder.chmod(0o755)
            shutil.chown(folder, "nobody")
        if not data.exists():
            made = [_program("initdb"), "--auth=trust", "--username=penstock", "-D", str(data)]
            subprocess.run([*_unprivileged(), *made], check=True, capture_output=True, cwd=folder)
        options = ["-D", str(data), "-p", str(self._port), "-h", "127.0.0.1", "-k", str(folder)]
        command = [*_unprivileged(), _program("postgres"), *options, "-c", "fsync=off"]
        return {0: Process("PostgreSQL", command, folder)}


def _unprivileged() -> list[str]:
    if os.geteuid() != 0:
        return []
    nobody = pwd.getpwnam("nobody")
    return ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]


def _program(name: str) -> str:
    found = sorted(DEBIAN.glob(f"*/bin/{name}")) or [Path(shutil.which(name) or "")]
    if not found[-1].is_file():
        raise NotInstalledError(name)
    return str(found[-1])
