"""Parses lists of broker addresses: `host:port,[::1]:port`."""

from typing import NamedTuple

from penstock.errors import ConfigError

DEFAULT_PORT = 9092


class Address(NamedTuple):
    """Host and port of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_addresses(text: str) -> list[Address]:
    """The addresses of a `bootstrap.servers` list; the default port is 9092."""
    found = [_parse(each.strip()) for each in text.split(",") if each.strip()]
    if not found:
        raise ConfigError("bootstrap.servers names no broker")
    return found


def _parse(text: str) -> Address:
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]"):
        host, port = text, str(DEFAULT_PORT)
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif any(each in host for each in ":[]"):
        host = ""
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ConfigError(f"bootstrap.servers: {text!r} is not host:port")
    return Address(host, int(port))
