"""A cluster for a test: ZooKeeper and some brokers, each in its own process.

    with TemporaryCluster(brokers=3) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        cluster.kill(0)
        ...

With pytest, use the fixture `cluster`; see `penstock.testing.plugin`. It needs Java and ZooKeeper
(Debian: `apt-get install zookeeper`) and starts in about three seconds.
"""

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.local.cluster import LocalCluster
from penstock.local.temporary import temporary_cluster
from penstock.testing.topics import make_topic


class TemporaryCluster:
    """Starts on entry; `settings` apply to all brokers, whose ids count from 0.

    If the caller gives a `directory`, the data stays there; otherwise it is deleted at the end.
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
        """The brokers' addresses, for `bootstrap.servers`."""
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
        """Create a topic; the brokers' defaults replace omitted values."""
        make_topic(self.bootstrap, name, partitions, replicas, configs)

    @property
    def running(self) -> set[int]:
        return set(self.local.pids())

    def http(self, broker: int) -> str:
        """host:port of a broker's `/metrics`, `/healthz` and `/readyz`."""
        return self.local.http(broker)

    def start(self, broker: int) -> None:
        """Start a stopped broker on its old data; returns when it is ready."""
        self.local.start(broker)

    def stop(self, broker: int) -> None:
        """Controlled shutdown: the broker moves its leaderships first."""
        self.local.stop(broker)

    def kill(self, broker: int) -> None:
        """SIGKILL: a crash of the process."""
        self.local.stop(broker, kill=True)

    def pause(self, broker: int) -> None:
        """SIGSTOP: the broker hangs but keeps its connections, until `resume`."""
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


Cluster = TemporaryCluster
"""The name in version 0.1, kept for tests that use it."""
