"""The metadata store on ZooKeeper. kazoo, which keeps the session, is imported nowhere else."""

from penstock.errors import ConfigError

try:
    import kazoo  # noqa: F401
except ModuleNotFoundError:
    raise ConfigError(
        "zookeeper.connect needs a package that is not there: pip install '.[cluster]'"
    ) from None
