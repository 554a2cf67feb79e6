"""Settings of the services beside the broker, which are separate processes and its clients."""

from dataclasses import dataclass
from pathlib import Path

from penstock.config.http_address import LISTEN_FORM
from penstock.config.setting import setting
from penstock.config.value import ConfigType, Password


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicesConfig:
    """Services beside the broker, such as the one that delivers delayed records."""

    penstock_services_config: str = setting(
        "penstock.services.config",
        "",
        "Client settings by which services beside the broker log in, in properties syntax, such as "
        "security.protocol. Without it they use a PLAINTEXT listener, or are not started.",
    )

    penstock_delay_store: Password | None = setting(
        "penstock.delay.store",
        None,
        "Where the delay service keeps due times: sqlite (the default, a file in the data "
        "directory), redis://…, postgresql://…, mysql://…, mariadb://… or hbase://…. A cache: it "
        "is built again from the topics if it is lost.",
        kind=ConfigType.PASSWORD,
    )
    penstock_registry_listen: str = setting(
        "penstock.registry.listen",
        "",
        "host:port at which a schema registry serves; empty: none is started. An address that "
        "other machines reach needs penstock.registry.users.",
        form=LISTEN_FORM,
    )
    penstock_registry_users: str = setting(
        "penstock.registry.users",
        "",
        "A file with users, roles and hashes; `penstock registry user` prints a line for it. "
        "Empty: no login, on loopback only.",
    )
    penstock_registry_ssl_keystore_location: str = setting(
        "penstock.registry.ssl.keystore.location",
        "",
        "A PEM or PKCS12 file with the registry's key and certificate; empty: plain HTTP.",
    )
    penstock_registry_ssl_truststore_location: str = setting(
        "penstock.registry.ssl.truststore.location",
        "",
        "Certificates that clients of the registry must show; empty: none are asked for.",
    )

    penstock_console_listen: str = setting(
        "penstock.console.listen",
        "",
        "host:port at which the web console serves; empty: none is started. An address that other "
        "machines reach needs penstock.console.users.",
        form=LISTEN_FORM,
    )
    penstock_console_users: str = setting(
        "penstock.console.users",
        "",
        "A file with users, roles and hashes; `penstock registry user` prints a line for it. "
        "Empty: no login, on loopback only.",
    )
    penstock_console_oidc_config: str = setting(
        "penstock.console.oidc.config",
        "",
        "A file with the identity provider (OpenID Connect) at which users of the console may log "
        "in; docs/console.md lists its settings. Empty: none. Needs penstock.console.users.",
    )
    penstock_console_audit_log: str = setting(
        "penstock.console.audit.log",
        "",
        "A file to which the console appends a JSON line for each change; empty: none.",
    )
    penstock_console_ssl_keystore_location: str = setting(
        "penstock.console.ssl.keystore.location",
        "",
        "A PEM or PKCS12 file with the console's key and certificate; empty: plain HTTP.",
    )

    penstock_rest_listen: str = setting(
        "penstock.rest.listen",
        "",
        "host:port at which records are taken over HTTP (POST /topics/NAME, POST /log); empty: "
        "nowhere. Needs penstock.rest.token.",
        form=LISTEN_FORM,
    )
    penstock_rest_token: Password | None = setting(
        "penstock.rest.token",
        None,
        "The token that clients of penstock.rest.listen send (Authorization: Bearer TOKEN). "
        "none: everybody who reaches the address may write; on loopback only.",
        kind=ConfigType.PASSWORD,
    )
    penstock_rest_log_topic: str = setting(
        "penstock.rest.log.topic", "log", "The topic to which POST /log writes."
    )

    def client_file(self) -> Path | None:
        return Path(self.penstock_services_config) if self.penstock_services_config else None

    def rest_token(self) -> str:
        return "" if self.penstock_rest_token is None else self.penstock_rest_token.value

    def delay_store(self) -> str:
        return "sqlite" if self.penstock_delay_store is None else self.penstock_delay_store.value
