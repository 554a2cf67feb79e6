"""A real Redis on loopback, in a folder of its own."""

from pathlib import Path

from peers.jars import program
from peers.process import Process, free_ports
from peers.servers import Servers


class RedisServer(Servers):
    """`with RedisServer() as redis: redis.url`; a kill may lose the last second."""

    def __init__(
        self, folder: Path | None = None, timeout_s: float = 60, *, password: str = ""
    ) -> None:
        super().__init__(folder, timeout_s)
        self._password = password
        (self._port,) = free_ports(1)

    @property
    def url(self) -> str:
        login = f":{self._password}@" if self._password else ""
        return f"redis://{login}127.0.0.1:{self._port}/0"

    def _answers(self, number: int) -> bool:
        return "Ready to accept connections" in self.output(number).read_text(errors="replace")

    def _prepared(self) -> dict[int, Process]:
        folder = self.folder / "redis"
        folder.mkdir(parents=True, exist_ok=True)
        server = folder / "redis-server"  # one program serves both; its name decides what it does
        if not server.exists():
            server.symlink_to(program("redis-check-rdb"))
        command = [str(server), "--bind", "127.0.0.1", "--port", str(self._port)]
        command += ["--dir", str(folder), "--appendonly", "yes", "--save", ""]
        if self._password:
            command += ["--requirepass", self._password]
        return {0: Process("Redis", command, folder)}
