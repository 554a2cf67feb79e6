"""A cluster inside a test: ZooKeeper and some brokers, each a process of its own.

    with Cluster(brokers=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        cluster.kill(0)
        ...

With pytest, ask for the fixture `cluster`; see `penstock.testing.plugin`. It needs Java and
ZooKeeper (Debian: `apt-get install zookeeper`) and starts in about three seconds.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.local.cluster import LocalCluster
from penstock.local.temporary import temporary_cluster
from penstock.testing.topics import make_topic


class Cluster:
    """Starts on entry; `settings` are those of all brokers, which are numbered from 0.

    With a `directory` of the caller's, data stay there; else nothing does.
    """

    def __init__(
        self,
        brokers: int = 3,
        *,
        settings: Mapping[str, str] | None = None,
        directory: Path | str | None = None,
    ) -> None:
        self._brokers, self._settings = brokers, settings or {}
        self._directory = None if directory is None else Path(directory)
        self._stack = ExitStack()
        self._local: LocalCluster | None = None

    @property
    def local(self) -> LocalCluster:
        assert self._local is not None, "the cluster has not been started"
        return self._local

    @property
    def bootstrap(self) -> str:
        """What a client takes as `bootstrap.servers`."""
        return self.local.plan.bootstrap

    @property
    def zookeeper(self) -> str:
        """ZooKeeper's connect string."""
        return self.local.plan.connect

    def create_topic(
        self,
        name: str,
        partitions: int | None = None,
        replicas: int | None = None,
        *,
        configs: Mapping[str, str] | None = None,
    ) -> None:
        """Make a topic. Settings that are left out: the brokers' defaults."""
        make_topic(self.bootstrap, name, partitions, replicas, configs)

    @property
    def running(self) -> set[int]:
        return set(self.local.pids())

    def http(self, broker: int) -> str:
        """host:port of a broker's `/metrics`, `/healthz` and `/readyz`."""
        return self.local.http(broker)

    def start(self, broker: int) -> None:
        """Bring a broker back with the data it had; returns when it serves."""
        self.local.start(broker)

    def stop(self, broker: int) -> None:
        """In good order: it hands over what it leads first."""
        self.local.stop(broker)

    def kill(self, broker: int) -> None:
        """SIGKILL: a crash of the process."""
        self.local.stop(broker, kill=True)

    def pause(self, broker: int) -> None:
        """SIGSTOP: it hangs and keeps its connections, until `resume`."""
        self.local.pause(broker)

    def resume(self, broker: int) -> None:
        self.local.resume(broker)

    def __enter__(self) -> Self:
        self._local = self._stack.enter_context(
            temporary_cluster(self._brokers, self._settings, directory=self._directory)
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
