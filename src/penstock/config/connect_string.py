"""`zookeeper.connect`: the servers of an ensemble, then an optional chroot."""

import re
from dataclasses import dataclass

from penstock.errors import ConfigError

DEFAULT_PORT = 2181

_SERVER = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:/\[\],]+))(?::([0-9]+))?")


@dataclass(frozen=True, slots=True)
class ConnectString:
    """Servers as host and port; the chroot starts with a slash, or is empty for the root."""

    servers: tuple[tuple[str, int], ...]
    chroot: str = ""

    @classmethod
    def parse(cls, text: str) -> "ConnectString":
        """Parse `host:port,host:port/chroot` as Kafka does; the default port is 2181."""
        addresses, slash, chroot = text.strip().partition("/")
        chroot = chroot.rstrip("/")
        if chroot and any(part in {"", ".", ".."} for part in chroot.split("/")):
            raise _refused(text, f"the chroot {slash + chroot!r} is not the path of a node")
        servers = tuple(_server(text, each.strip()) for each in addresses.split(","))
        return cls(servers, slash + chroot if chroot else "")

    @property
    def addresses(self) -> str:
        """The servers without the chroot."""
        return ",".join(_spelled(host, port) for host, port in self.servers)

    def __str__(self) -> str:
        return self.addresses + self.chroot


def _server(text: str, address: str) -> tuple[str, int]:
    match = _SERVER.fullmatch(address)
    if match is None:
        raise _refused(text, f"{address!r} is not host:port")
    bracketed, host, port = match.groups()
    number = DEFAULT_PORT if port is None else int(port)
    if not 0 < number < 65_536:
        raise _refused(text, f"{address!r} has no port between 1 and 65535")
    return bracketed or host, number


def _spelled(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _refused(text: str, why: str) -> ConfigError:
    return ConfigError(
        f"zookeeper.connect is {text!r}: {why}; write host:port,host:port/chroot, "
        "where the chroot may be left out"
    )
