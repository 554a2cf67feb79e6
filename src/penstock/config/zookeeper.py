"""Settings of ZooKeeper, which a cluster of several brokers uses; the names are Kafka 3.9's."""

from dataclasses import dataclass

from penstock.config.connect_string import ConnectString
from penstock.config.setting import setting
from penstock.config.value import ConfigType, Password
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
        "Protect the nodes that this broker creates: only clients with the brokers' login may "
        "change them, or read those with secrets.",
    )
    penstock_zookeeper_jaas_config: Password | None = setting(
        "penstock.zookeeper.jaas.config",
        None,
        "The brokers' login at ZooKeeper, as Kafka has it in the section `Client` of a JAAS file: "
        '`org.apache.zookeeper.server.auth.DigestLoginModule required username="…" '
        'password="…";`, with `Client { … };` around it or without.',
        kind=ConfigType.PASSWORD,
    )
    zookeeper_ssl_client_enable: bool = setting(
        "zookeeper.ssl.client.enable", False, "Connect to ZooKeeper over TLS."
    )
    zookeeper_ssl_keystore_location: str | None = setting(
        "zookeeper.ssl.keystore.location",
        None,
        "File with the key and certificate that ZooKeeper is shown: PEM or PKCS12.",
    )
    zookeeper_ssl_keystore_password: Password | None = setting(
        "zookeeper.ssl.keystore.password",
        None,
        "Password of that file, or of an encrypted key in PEM.",
        kind=ConfigType.PASSWORD,
    )
    zookeeper_ssl_keystore_type: str | None = setting(
        "zookeeper.ssl.keystore.type", None, "Accepted, without effect: its bytes tell."
    )
    zookeeper_ssl_truststore_location: str | None = setting(
        "zookeeper.ssl.truststore.location",
        None,
        "File with the authorities of ZooKeeper's certificate: PEM or PKCS12.",
    )
    zookeeper_ssl_truststore_password: Password | None = setting(
        "zookeeper.ssl.truststore.password",
        None,
        "Password of a PKCS12 file.",
        kind=ConfigType.PASSWORD,
    )
    zookeeper_ssl_truststore_type: str | None = setting(
        "zookeeper.ssl.truststore.type", None, "Accepted, without effect: its bytes tell."
    )
    zookeeper_ssl_endpoint_identification_algorithm: str = setting(
        "zookeeper.ssl.endpoint.identification.algorithm",
        "HTTPS",
        "Whether ZooKeeper's name in its certificate is checked: HTTPS, or empty for not.",
        choices=("HTTPS", "https", ""),
    )
    zookeeper_ssl_protocol: str = setting(
        "zookeeper.ssl.protocol",
        "TLSv1.2",
        "Accepted, without effect: TLSv1.2 or TLSv1.3 is used.",
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
