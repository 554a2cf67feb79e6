"""Settings of listeners: where clients and other brokers connect.

Listeners have names, and `listener.security.protocol.map` gives the protocol of each, so one broker
can serve an internal and an external network.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from penstock.config.setting import Update, setting
from penstock.config.value import ConfigType
from penstock.errors import ConfigError

EVERY_INTERFACE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104  recognised, not bound
"""Hosts that a broker can listen on, but that a client cannot connect to."""


ADDRESS = re.compile(r"([^:/]+)://\[?([0-9A-Za-z\-%._:]*?)\]?:([0-9]{1,5})(?:-([0-9]{1,5}))?")
"""The listener's name, host, port, and the end of a port range."""


class SecurityProtocol(StrEnum):
    """A listener's protocol: with or without TLS, with or without SASL."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def number(self) -> int:
        """The protocol's number in requests between brokers."""
        return tuple(SecurityProtocol).index(self)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One address of a listener; an empty host means every interface, or this machine's name."""

    listener: str
    protocol: SecurityProtocol
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.listener}://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerConfig:
    """Where clients and other brokers connect."""

    listeners: tuple[str, ...] = setting(
        "listeners",
        ("PLAINTEXT://:9092",),
        "Addresses to listen on: name://host:port; an empty host means every interface.",
        update=Update.PER_BROKER,
    )
    advertised_listeners: tuple[str, ...] | None = setting(
        "advertised.listeners",
        None,
        "Addresses that clients are given; `listeners` when not set. With `serve --workers` a port "
        "is counted on for each worker, and a range (9093-9096) names them.",
        kind=ConfigType.LIST,
    )
    listener_security_protocol_map: str = setting(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Which security protocol each listener name stands for.",
        update=Update.PER_BROKER,
    )
    inter_broker_listener_name: str | None = setting(
        "inter.broker.listener.name",
        None,
        "The listener that brokers use between themselves.",
    )
    security_inter_broker_protocol: str = setting(
        "security.inter.broker.protocol",
        "PLAINTEXT",
        "Finds the brokers' listener by its protocol when `inter.broker.listener.name` is not set.",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    control_plane_listener_name: str | None = setting(
        "control.plane.listener.name",
        None,
        "A listener of its own for requests of the controller. Only unset.",
        only="the controller speaks to brokers on inter.broker.listener.name",
    )
    controller_listener_names: tuple[str, ...] = setting(
        "controller.listener.names",
        (),
        "Accepted so that a KRaft file starts a broker; listeners of these names are not opened.",
    )

    def __post_init__(self) -> None:
        bound = self.endpoints()
        _refuse_twice("listeners", (each.listener for each in bound))
        _refuse_twice("listeners", (f"{each.host}:{each.port}" for each in bound if each.port))
        if not bound:
            raise ConfigError("listeners names no address")
        advertised = self.advertised()
        _refuse_twice("advertised.listeners", (each.listener for each in advertised))
        for each in advertised:
            if each.host in {"0.0.0.0", "::"}:  # noqa: S104 (refused, not bound)
                raise ConfigError(
                    f"advertised.listeners: nobody can connect to {each.host}; name the address "
                    f"that clients use: advertised.listeners={each.listener}://HOST:{each.port}"
                )
            if each.listener not in {other.listener for other in bound}:
                raise ConfigError(f"advertised.listeners: {each.listener} is not in listeners")
        if self.inter_broker() not in {each.listener for each in advertised}:
            raise ConfigError(
                f"inter.broker.listener.name: {self.inter_broker()} is not in "
                "advertised.listeners; name one of them, or set security.inter.broker.protocol to "
                "the protocol of one"
            )

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The addresses to bind, without those of KRaft controller listeners."""
        return tuple(self._parsed("listeners", self.listeners))

    def advertised(self) -> tuple[Endpoint, ...]:
        """The addresses that clients are given."""
        if not self.advertised_listeners:
            return self.endpoints()
        return tuple(self._parsed("advertised.listeners", self.advertised_listeners))

    def advertised_ranges(self) -> dict[str, range]:
        """The advertised ports of workers, by listener, where a range is configured."""
        found = {}
        for text in self.advertised_listeners or ():
            match = ADDRESS.fullmatch(text)
            if match is not None and match[4] is not None:
                found[match[1].upper()] = range(int(match[3]), int(match[4]) + 1)
        return found

    def inter_broker(self) -> str:
        """The name of the listener that brokers use between themselves."""
        if self.inter_broker_listener_name:
            return self.inter_broker_listener_name.upper()
        wanted = self.security_inter_broker_protocol
        bound = self.endpoints()
        named = (each.listener for each in bound if each.listener == wanted)
        speaking = (each.listener for each in bound if each.protocol == wanted)
        return next(named, None) or next(speaking, wanted)

    def protocols(self) -> dict[str, SecurityProtocol]:
        """`listener.security.protocol.map`, by listener name."""
        found = {}
        for pair in filter(None, self.listener_security_protocol_map.split(",")):
            listener, _, protocol = (part.strip().upper() for part in pair.rpartition(":"))
            if not listener or protocol not in set(SecurityProtocol):
                raise ConfigError(
                    f"listener.security.protocol.map is {pair!r}, must be listener:protocol with "
                    f"one of {', '.join(SecurityProtocol)}"
                )
            found[listener] = SecurityProtocol(protocol)
        return found

    def _parsed(self, name: str, texts: Iterable[str]) -> Iterator[Endpoint]:
        protocols = self.protocols()
        elsewhere = {each.upper() for each in self.controller_listener_names}
        for text in texts:
            match = ADDRESS.fullmatch(text)
            if match is None or int(match[4] or match[3]) > 65535:
                raise ConfigError(f"{name} is {text!r}, must be name://host:port")
            if match[4] is not None and (name == "listeners" or int(match[4]) < int(match[3])):
                raise ConfigError(
                    f"{name} is {text!r}: only advertised.listeners may have a range of ports, "
                    "from the lower to the higher"
                )
            listener = match[1].upper()
            if listener in elsewhere:
                continue
            if listener not in protocols:
                raise ConfigError(f"{name}: {listener} is not in listener.security.protocol.map")
            yield Endpoint(listener, protocols[listener], match[2], int(match[3]))


def _refuse_twice(name: str, items: Iterable[str]) -> None:
    seen: set[str] = set()
    for item in items:
        if item in seen:
            raise ConfigError(f"{name} has {item} twice")
        seen.add(item)
