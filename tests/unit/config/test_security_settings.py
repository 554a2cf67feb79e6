"""A broker does not start with security settings that it cannot enforce."""

from pathlib import Path

import pytest

from penstock.broker.startup.banner import starting
from penstock.config.authorization import KNOWN_AUTHORIZERS
from penstock.config.effective import BrokerLayers
from penstock.config.sources import resolve
from penstock.controller.configs import BrokerResource, checked
from penstock.errors import ConfigError, InvalidRequest
from penstock.types import BrokerId

REFUSED = {
    "ssl.provider": "x",
    "ssl.engine.factory.class": "x",
    "sasl.server.callback.handler.class": "x",
    "listener.name.internal.ssl.provider": "x",
    "listener.name.external.plain.sasl.server.callback.handler.class": "x",
    "principal.builder.class": "x",
    "security.providers": "x",
    "zookeeper.ssl.crl.enable": "true",
    "SSL.provider": "x",
    "penstock.sasl.enabled.mechanisms": "PLAIN",
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_security_setting_stops_the_startup(name: str) -> None:
    with pytest.raises(ConfigError, match=f"--set: {name} has no effect yet"):
        resolve(pairs=[f"{name}={REFUSED[name]}"])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("zookeeper.ssl.crl.enable", "false"),
    ],
)
def test_a_security_setting_without_effect_is_a_warning(name: str, text: str) -> None:
    assert len(resolve(pairs=[f"{name}={text}"]).warnings) == 1


def test_variables_mean_the_same_as_lines_of_a_file() -> None:
    for variable in (
        "KAFKA_PRINCIPAL_BUILDER_CLASS",
        "KAFKA_SSL_PROVIDER",
        "PENSTOCK_SSL_KEYSTORE_LOCATION",
    ):
        with pytest.raises(ConfigError, match=f"{variable}: .* has no effect yet"):
            resolve(environ={variable: "x"})


def test_a_listener_variable_without_the_second_underscore_stops_the_startup() -> None:
    listeners = "PLAINTEXT://:1,SASL_SSL://:2"
    meant = {"KAFKA_LISTENERS": listeners, "KAFKA_LISTENER_NAME_SASL__SSL_SSL_CLIENT_AUTH": "none"}
    assert resolve(environ=meant, strict=True).warnings == ()
    with pytest.raises(ConfigError, match="KAFKA_LISTENER_NAME_SASL_SSL_SSL_CLIENT_AUTH: "):
        resolve(environ={"KAFKA_LISTENER_NAME_SASL_SSL_SSL_CLIENT_AUTH": "required"})


@pytest.mark.parametrize("prefix", ["listener.name.out.", "listener.name.out.plain."])
def test_a_setting_of_an_unknown_listener_stops_the_startup(prefix: str) -> None:
    name = f"{prefix}connections.max.reauth.ms"
    with pytest.raises(ConfigError, match=f"--set: {name} is for a listener that is not there"):
        resolve(pairs=[f"{name}=1"])
    of_kraft = ["controller.listener.names=OUT", f"{name}=1"]
    assert resolve(pairs=of_kraft, strict=True).warnings == ()


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


def test_a_variable_that_resembles_a_setting_is_an_error_and_any_other_is_not() -> None:
    with pytest.raises(ConfigError, match=r"did you mean log\.retention\.hours"):
        resolve(environ={"KAFKA_LOG_RETENTION_HOUR": "1"}, strict=True)
    assert len(resolve(environ={"KAFKA_DASHBOARD_TEAM": "x"}, strict=True).warnings) == 1


@pytest.mark.parametrize(
    ("pairs", "says"),
    [
        (
            ["authorizer.class.name=com.example.Mine"],
            "classes cannot be loaded; use kafka.security",
        ),
        (["super.users=User:admin"], "super.users has no effect without authorizer.class.name"),
    ],
)
def test_only_kafkas_own_authorizers_are_accepted(pairs: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        resolve(pairs=pairs)
    for name in KNOWN_AUTHORIZERS:
        assert resolve(pairs=[f"authorizer.class.name={name}"]).config.authorization.is_on
    assert not resolve(pairs=["authorizer.class.name="]).config.authorization.is_on


BOTH = "listeners=PLAINTEXT://:1,SASL_SSL://:2"
LOGIN = "listener.name.sasl_ssl.plain.sasl.jaas.config"


def test_listener_settings_are_declared_by_their_suffix() -> None:
    given = {
        "listeners": "PLAINTEXT://:1,OUT://:2,SASL_SSL://:3",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OUT:SSL,SASL_SSL:SASL_SSL",
        "listener.name.out.ssl.client.auth": "required",
        LOGIN: "canary",
        "listener.name.sasl_ssl.scram-sha-512.connections.max.reauth.ms": "1000",
    }
    resolved = resolve(pairs=[f"{name}={text}" for name, text in given.items()], strict=True)
    assert resolved.texts() == given
    with pytest.raises(ConfigError, match=r"ssl\.client\.auth is 'maybe', must be one of"):
        resolve(pairs=["listener.name.out.ssl.client.auth=maybe"])


def test_a_variable_sets_a_listeners_login() -> None:
    environ = {"KAFKA_LISTENER_NAME_SASL__SSL_PLAIN_SASL_JAAS_CONFIG": "canary"}
    resolved = resolve(environ=environ, pairs=[BOTH])
    assert resolved.texts()[LOGIN] == "canary"


def test_the_startup_log_shows_no_secret(tmp_path: Path) -> None:
    secrets = ("ssl.keystore.password", "ssl.keystore.key", LOGIN)
    resolved = resolve(pairs=[BOTH, *(f"{name}=canary" for name in secrets)])
    reported = "\n".join([*starting(resolved, tmp_path), repr(resolved.config)])
    assert "canary" not in reported
    for name in secrets:
        assert f"{name}=[hidden] (--set)" in reported


def test_listener_settings_cannot_be_altered_at_run_time() -> None:
    """Otherwise their secrets would be stored in plain text."""
    with pytest.raises(InvalidRequest, match="Cannot update these configs dynamically"):
        checked(BrokerResource(BrokerId(1)), {LOGIN: "canary"}, BrokerLayers())
