"""ZooKeeper, which a cluster of several brokers uses; the names are Kafka 3.9's."""

from dataclasses import dataclass

from penstock.config.connect_string import ConnectString
from penstock.config.setting import setting
from penstock.config.value import ConfigType
from penstock.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class ZookeeperConfig:
    """ZooKeeper, which a cluster of several brokers uses; the names are Kafka 3.9's."""

    zookeeper_connect: str | None = setting(
        "zookeeper.connect",
        None,
        "host:port list of the ensemble with an optional chroot; not set, the broker keeps its "
        "metadata itself.",
    )
    zookeeper_session_timeout_ms: int = setting(
        "zookeeper.session.timeout.ms",
        6000,
        "How long ZooKeeper waits before it considers a silent broker dead.",
    )
    zookeeper_connection_timeout_ms: int | None = setting(
        "zookeeper.connection.timeout.ms",
        None,
        "How long to wait for the first connection; the session timeout when not set.",
        kind=ConfigType.INT,
    )
    zookeeper_max_in_flight_requests: int = setting(
        "zookeeper.max.in.flight.requests",
        10,
        "Requests to ZooKeeper in flight at a time.",
        low=1,
    )
    zookeeper_set_acl: bool = setting(
        "zookeeper.set.acl",
        False,
        "Protect the nodes that this broker creates.",
    )
    zookeeper_clientcnxnsocket: str | None = setting(
        "zookeeper.clientCnxnSocket",
        None,
        "Accepted, without effect: the Java class has no meaning here.",
    )
    zookeeper_metadata_migration_enable: bool = setting(
        "zookeeper.metadata.migration.enable",
        False,
        "Only false: there is no KRaft to migrate to.",
    )

    def __post_init__(self) -> None:
        if self.zookeeper_connect:
            ConnectString.parse(self.zookeeper_connect)  # raises an error that names the setting
        if self.zookeeper_metadata_migration_enable:
            raise ConfigError(
                "zookeeper.metadata.migration.enable is true, but there is no KRaft to migrate to"
            )
