"""A broker does not start with security settings that it cannot honour."""

import pytest

from penstock.config.sources import resolve
from penstock.errors import ConfigError

REFUSED = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:admin",
    "allow.everyone.if.no.acl.found": "false",
    "ssl.keystore.location": "/etc/kafka/keystore.jks",
    "ssl.client.auth": "required",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256",
    "sasl.jaas.config": "x",
    "listener.name.internal.ssl.keystore.location": "/k",
    "listener.name.external.scram-sha-256.sasl.jaas.config": "x",
    "delegation.token.secret.key": "x",
    "principal.builder.class": "x",
    "connections.max.reauth.ms": "3600000",
    "security.providers": "x",
    "zookeeper.ssl.client.enable": "true",
    "SSL.keystore.location": "/k",
    "penstock.sasl.enabled.mechanisms": "PLAIN",
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_security_setting_stops_the_start(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--set: {name} has no effect yet"):
        resolve(pairs=[f"{name}={REFUSED[name]}"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("authorizer.class.name", ""),
        ("ssl.client.auth", "none"),
        ("allow.everyone.if.no.acl.found", "true"),
        ("zookeeper.ssl.client.enable", "false"),
    ],
)
def test_a_security_setting_without_effect_is_a_warning(name: str, text: str) -> None:
    assert len(resolve(pairs=[f"{name}={text}"]).warnings) == 1


def test_variables_mean_the_same_as_lines_of_a_file() -> None:
    for variable in (
        "KAFKA_AUTHORIZER_CLASS_NAME",
        "KAFKA_SSL_KEYSTORE_LOCATION",
        "PENSTOCK_SSL_KEYSTORE_LOCATION",
    ):
        with pytest.raises(ConfigError, match=f"{variable}: .* has no effect yet"):
            resolve(environ={variable: "x"})


def test_variables_of_clients_are_not_broker_settings() -> None:
    theirs = {"KAFKA_SASL_PASSWORD": "x", "KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SSL_CAFILE": "/c"}
    assert len(resolve(environ=theirs, strict=True).warnings) == len(theirs)


@pytest.mark.parametrize(
    "variable",
    [
        "PENSTOCK_BOOTSTRAP",
        "PENSTOCK_CACHE",
        "PENSTOCK_PURE",
        "PENSTOCK_ZOOKEEPER_CLASSPATH",
        "KAFKA_BOOTSTRAP_SERVERS",
    ],
)
def test_documented_variables_are_not_unknown_settings(variable: str) -> None:
    assert resolve(environ={variable: "x"}, strict=True).warnings == ()


def test_a_variable_like_a_setting_is_a_mistake_and_any_other_is_not() -> None:
    with pytest.raises(ConfigError, match=r"did you mean log\.retention\.hours"):
        resolve(environ={"KAFKA_LOG_RETENTION_HOUR": "1"}, strict=True)
    assert len(resolve(environ={"KAFKA_DASHBOARD_TEAM": "x"}, strict=True).warnings) == 1
