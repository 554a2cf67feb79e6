"""The metadata store on ZooKeeper. Only this package imports kazoo, which keeps the session."""

from penstock.config.extra import install
from penstock.errors import ConfigError

try:
    import kazoo  # noqa: F401
except ModuleNotFoundError:
    raise ConfigError(
        f"zookeeper.connect needs a package that is not installed: {install('cluster')}"
    ) from None
