"""A real ZooKeeper: one standalone server, or an ensemble of three."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kazoo.client import KazooClient

from peers.java import command
from peers.probe import zookeeper_mode
from peers.process import Process, free_ports, wait_until
from peers.servers import Servers, properties

JARS = "zookeeper-3.9.5"
MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


class ZooKeeper(Servers):
    """`with ZooKeeper(3) as zookeeper: zookeeper.connect`; servers are numbered from 0."""

    def __init__(
        self,
        servers: int = 1,
        *,
        settings: Mapping[str, object] | None = None,
        folder: Path | None = None,
        timeout_s: float = 60,
        jvm: Sequence[str] = (),
    ) -> None:
        super().__init__(folder, timeout_s)
        self._settings, self._jvm = settings or {}, jvm
        ports = free_ports(3 * servers)
        self._client_ports = ports[:servers]
        self._quorum_ports = list(zip(ports[servers::2], ports[servers + 1 :: 2], strict=True))

    @property
    def connect(self) -> str:
        """The connect string: every server's address."""
        return ",".join(f"127.0.0.1:{port}" for port in self._client_ports)

    def port(self, server: int) -> int:
        return self._client_ports[server]

    def mode(self, server: int) -> str | None:
        """`standalone`, `leader` or `follower`; None while it does not serve."""
        return zookeeper_mode(self._client_ports[server])

    def _answers(self, number: int) -> bool:
        return self.mode(number) is not None

    def _prepared(self) -> dict[int, Process]:
        return {server: self._process(server) for server in range(len(self._client_ports))}

    def _process(self, server: int) -> Process:
        folder = self.folder / f"zookeeper-{server}"
        data = folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        config: dict[str, object] = {
            "dataDir": data,
            "clientPortAddress": "127.0.0.1",
            "clientPort": self._client_ports[server],
            "tickTime": 2000,
            "initLimit": 10,
            "syncLimit": 5,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "*",
        }
        if len(self._client_ports) > 1:
            (data / "myid").write_text(str(server))
            for peer, (quorum, election) in enumerate(self._quorum_ports):
                config[f"server.{peer}"] = f"127.0.0.1:{quorum}:{election}"
        (folder / "zoo.cfg").write_text(properties({**config, **self._settings}))
        java = command(JARS, MAIN, str(folder / "zoo.cfg"), jvm=self._jvm, log_level="INFO")
        return Process(f"ZooKeeper server {server}", java, folder)


def wait_until_gone(connect: str, path: str, timeout_s: float) -> None:
    """Waits until the node is gone: an ephemeral node outlives its killed owner by a session
    timeout.
    """
    client = KazooClient(connect)
    client.start(timeout_s)
    try:
        wait_until(lambda: client.exists(path) is None, timeout_s, f"{path} to vanish")
    finally:
        client.stop()
        client.close()
