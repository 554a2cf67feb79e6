"""Penstock brokers on one ZooKeeper, each in a separate process."""

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from peers.penstock import SOURCE
from peers.process import Process, free_ports
from peers.servers import Servers


def own_host(broker: int) -> str:
    """A loopback address that no broker of another test process uses, so that its links may
    be cut.
    """
    high, low = divmod(os.getpid(), 256)
    return f"127.{1 + high % 254}.{low}.{11 + broker}"


class PenstockCluster(Servers):
    """`with PenstockCluster(zookeeper.connect, 3) as cluster: cluster.bootstrap`; numbered from 0.

    With `apart`, each broker has a loopback address of its own: see `own_host`. Broker ids start at
    `first`, if other brokers have the ids below.
    """

    def __init__(
        self,
        zookeeper: str,
        brokers: int = 3,
        *,
        settings: Mapping[str, object] | None = None,
        apart: bool = False,
        first: int = 0,
        folder: Path | None = None,
        timeout_s: float = 120,
    ) -> None:
        super().__init__(folder, timeout_s)
        self._zookeeper, self._settings = zookeeper, settings or {}
        ports = free_ports(brokers)
        hosts = [own_host(each) if apart else "127.0.0.1" for each in range(brokers)]
        self.addresses = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=True)]
        self._first = first
        self._starts: dict[int, int] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(self.addresses)

    def source(self, broker: int) -> Path:  # noqa: ARG002 - others may run other versions
        """The sources that the broker runs."""
        return SOURCE

    def environ(self, broker: int) -> Mapping[str, str]:  # noqa: ARG002 - of a special machine
        """Additional environment variables of the broker."""
        return {}

    def directory(self, broker: int) -> Path:
        return self.folder / f"broker-{broker}" / "data"

    def data_dir(self, broker: int) -> Path:
        return self.directory(broker) / "logs"

    def start(self, *numbers: int) -> None:
        for each in numbers:
            self._starts[each] = self._ready(each) + 1
        super().start(*numbers)

    def _answers(self, number: int) -> bool:
        return self._ready(number) >= self._starts[number]

    def _ready(self, number: int) -> int:
        output = self.output(number)
        printed = output.read_text(errors="replace") if output.exists() else ""
        return len(re.findall(r"^ready \S+:\d+$", printed, re.MULTILINE))

    def _prepared(self) -> dict[int, Process]:
        count = len(self.addresses)
        return {broker: self._process(broker) for broker in range(self._first, self._first + count)}

    def _process(self, broker: int) -> Process:
        folder = self.directory(broker).parent
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "broker.id": broker,
            "zookeeper.connect": self._zookeeper,
            "listeners": f"PLAINTEXT://{self.addresses[broker - self._first]}",
            **self._settings,
        }
        serve = [sys.executable, "-m", "penstock", "serve", "--dir", str(self.directory(broker))]
        for name, value in settings.items():
            serve += ["--set", f"{name}={value}"]
        path = os.environ.get("PYTHONPATH", "")
        more = [f"{name}={value}" for name, value in self.environ(broker).items()]
        command = ["env", f"PYTHONPATH={self.source(broker)}{os.pathsep}{path}", *more, *serve]
        return Process(f"Penstock {broker}", command, folder)
