"""A temporary cluster on free ports, for tests and the lab."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.local.cluster import ClusterPlan, LocalCluster
from penstock.local.ports import free_ports


@contextmanager
def temporary_cluster(
    brokers: int,
    settings: Mapping[str, str],
    *,
    directory: Path | None = None,
    one_by_one: bool = False,
) -> Iterator[LocalCluster]:
    """Run brokers and ZooKeeper, which end with this process, however it ends.

    In the caller's `directory` they shut down cleanly and leave their data. Otherwise they are
    killed, and their data is deleted.
    """
    with TemporaryDirectory(prefix="penstock-") as folder:
        port = free_ports(brokers + 1)
        plan = ClusterPlan(
            brokers=brokers,
            port=port + 1,
            zookeeper=f"127.0.0.1:{port}",
            zookeeper_port=port,
            settings=dict(settings),
        )
        path = directory or Path(folder)
        cluster = LocalCluster.find(path, tied=True)
        if cluster is None:
            cluster = LocalCluster.create(path, plan, tied=True)
        else:
            cluster.change(brokers=brokers, settings=settings)
        try:
            for broker in range(brokers if one_by_one else 0):
                cluster.start(broker)  # the first one becomes the controller
            cluster.start()
            yield cluster
        finally:
            cluster.stop(kill=directory is None)
