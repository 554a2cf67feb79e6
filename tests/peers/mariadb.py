"""A real MariaDB on loopback, in a folder of its own."""

import os
import shutil
import subprocess
from pathlib import Path

from peers.jars import NotInstalledError
from peers.process import Process, free_ports
from peers.servers import Servers

DATABASE = "penstock"
SERVER = "/usr/sbin"
"""Debian's path, which is not in most users' PATH."""


class MariaDb(Servers):
    """`with MariaDb() as mariadb: mariadb.url`; every local user has all rights."""

    def __init__(self, folder: Path | None = None, timeout_s: float = 60) -> None:
        super().__init__(folder, timeout_s)
        (self.port,) = free_ports(1)

    @property
    def url(self) -> str:
        return f"mariadb://root@127.0.0.1:{self.port}/{DATABASE}"

    def _answers(self, number: int) -> bool:
        return "ready for connections" in self.output(number).read_text(errors="replace")

    def _prepared(self) -> dict[int, Process]:
        folder = self.folder / "mariadb"
        folder.mkdir(parents=True, exist_ok=True)
        data, user = folder / "data", []
        if os.geteuid() == 0:
            # As root it must be told which user to run as.
            user = ["--user=nobody"]
            self.folder.chmod(0o755)
            shutil.chown(folder, "nobody")
        if not data.exists():
            made = [_program("mariadb-install-db"), "--no-defaults", f"--datadir={data}", *user]
            made += ["--auth-root-authentication-method=normal", "--skip-name-resolve"]
            subprocess.run(made, check=True, capture_output=True, cwd=folder)
            # An empty folder is a database without tables, and without a charset of its own.
            (data / DATABASE).mkdir()
            if user:
                shutil.chown(data / DATABASE, "nobody")
        command = [_program("mariadbd"), "--no-defaults", f"--datadir={data}", *user]
        command += ["--bind-address=127.0.0.1", f"--port={self.port}", "--skip-name-resolve"]
        command += [f"--socket={folder / 'socket'}", f"--pid-file={folder / 'pid'}"]
        command += ["--character-set-server=utf8mb4"]  # as Debian's own settings say
        command += ["--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M"]
        return {0: Process("MariaDB", command, folder)}


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}{os.pathsep}{SERVER}")
    if found is None:
        raise NotInstalledError(name)
    return found
