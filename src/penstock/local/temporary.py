"""A cluster for as long as somebody needs one: in a directory of its own, on free ports."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.local.cluster import LocalCluster, Plan
from penstock.local.ports import free_ports


@contextmanager
def temporary_cluster(
    brokers: int,
    settings: Mapping[str, str],
    *,
    directory: Path | None = None,
    one_by_one: bool = False,
) -> Iterator[LocalCluster]:
    """Brokers and ZooKeeper; they end with this process, however it ends.

    In a directory of the caller's they stop in good order and leave their data; else nothing is
    left, and they are killed.
    """
    with TemporaryDirectory(prefix="penstock-") as folder:
        port = free_ports(brokers + 1)
        plan = Plan(
            brokers=brokers,
            port=port + 1,
            zookeeper=f"127.0.0.1:{port}",
            zookeeper_port=port,
            settings=dict(settings),
        )
        where = directory or Path(folder)
        cluster = LocalCluster.find(where, tied=True)
        if cluster is None:
            cluster = LocalCluster.create(where, plan, tied=True)
        else:
            cluster.change(brokers=brokers, settings=settings)
        try:
            for broker in range(brokers if one_by_one else 0):
                cluster.start(broker)  # the first of them becomes the controller
            cluster.start()
            yield cluster
        finally:
            cluster.stop(kill=directory is None)
