"""The protection of each listener: TLS, SASL or both."""

from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import TypeAlias

import msgspec

from penstock.broker.net.sasl import SaslListener
from penstock.broker.net.tls import TlsListener
from penstock.client.sasl import OAUTHBEARER, Login
from penstock.client.security import ClientSecurity, no_security
from penstock.client.token import URL, token_source
from penstock.clock import Clock
from penstock.config.listener import Endpoint, ListenerConfig, SecurityProtocol
from penstock.config.listener_security import ListenerSecurity, without_mechanism
from penstock.config.providers import Provided
from penstock.errors import ConfigError
from penstock.security.jaas import parse_jaas

PeerSecurity: TypeAlias = Callable[[], ClientSecurity]


class Protection(msgspec.Struct, frozen=True):
    """The protection of one listener; None where it is not used."""

    tls: TlsListener | None = None
    sasl: SaslListener | None = None


def protections(
    endpoints: Iterable[Endpoint],
    texts: Mapping[str, str],
    clock: Clock,
    chance: Random,
    provided: Provided | None = None,
) -> dict[str, Protection]:
    """The protections by listener, without PLAINTEXT listeners. Reads keys and certificates."""
    for name in filter(None, map(without_mechanism, texts)):
        raise ConfigError(
            f"{name}: logins belong to a listener and a mechanism: write "
            "listener.name.<listener>.<mechanism>.sasl.jaas.config"
        )
    found = {}
    for endpoint in endpoints:
        if endpoint.protocol is not SecurityProtocol.PLAINTEXT:
            security = ListenerSecurity(endpoint.listener, endpoint.protocol, texts)
            found[endpoint.listener] = Protection(
                TlsListener(security, clock.now_ms(), provided) if security.uses_tls else None,
                SaslListener(security, clock, chance) if security.uses_sasl else None,
            )
    return found


def security_between_brokers(
    listener: ListenerConfig, texts: Mapping[str, str], protected: Mapping[str, Protection]
) -> PeerSecurity:
    """How this broker connects to other brokers, on the inter-broker listener."""
    named = listener.inter_broker()
    if named not in protected:
        return no_security
    security = ListenerSecurity(named, listener.protocols()[named], texts)
    return peer_security(security, protected[named])


def peer_security(security: ListenerSecurity, protection: Protection) -> PeerSecurity:
    login = _own_login(security) if security.uses_sasl else None
    tls = protection.tls
    if tls is None:
        return lambda: ClientSecurity(None, login)
    if tls.to_peers is None:
        raise ConfigError(
            f"listener {security.listener} is that of the brokers, but neither "
            "ssl.truststore.location nor ssl.truststore.certificates says which of them to trust"
        )
    return lambda: ClientSecurity(tls.to_peers, login)  # a function: the certificate may change


def _own_login(security: ListenerSecurity) -> Login:
    mechanism = security.config().sasl_mechanism_inter_broker_protocol
    if mechanism not in security.config().sasl_enabled_mechanisms:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol is {mechanism}, which is not among the "
            f"sasl.enabled.mechanisms of listener {security.listener}"
        )
    text = security.config(mechanism).sasl_jaas_config
    name = f"listener.name.{security.listener.lower()}.{mechanism.lower()}.sasl.jaas.config"
    options = {} if text is None else parse_jaas(name, text.value, mechanism).options
    if mechanism == OAUTHBEARER:
        url = security.config(mechanism).sasl_oauthbearer_token_endpoint_url or ""
        return Login(mechanism, token=token_source({URL: url}, options, None))
    if "username" not in options or "password" not in options:
        raise ConfigError(
            f"{name} has no username and password, by which this broker logs in to the others"
        )
    return Login(mechanism, options["username"], options["password"])
