"""The clients that settings apply to: a user, a client id, both, or an address; or a default."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from penstock.metadata import paths

DEFAULT: Final = ""
"""The name that stands for all entities without settings of their own. No entity can have it."""

USER, CLIENT_ID, IP = "user", "client-id", "ip"


class ClientEntity(NamedTuple):
    """The clients that settings apply to; a part that is None does not matter."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    def parts(self) -> Iterator[tuple[str, str | None]]:
        """Its types and names as requests and tools write them; None for the default."""
        for kind, name in zip((USER, CLIENT_ID, IP), self, strict=True):
            if name is not None:
                yield kind, name or None

    def __str__(self) -> str:
        return ", ".join(f"{kind} {name or '<default>'}" for kind, name in self.parts())


def path_of(entity: ClientEntity) -> str:
    user, client_id, ip = entity
    if ip is not None:
        return paths.ip_config(ip or None)
    if user is None:
        return paths.client_config(client_id or None)
    if client_id is None:
        return paths.user_config(user or None)
    return paths.user_client_config(user or None, client_id or None)


def entity_at(path: str) -> ClientEntity:
    """The reverse of `path_of`."""
    kind, name, *clients = path.removeprefix("/config/").split("/")
    known = paths.entity_of(name) or DEFAULT
    if kind == "ips":
        return ClientEntity(ip=DEFAULT if name == paths.DEFAULT_ENTITY else name)
    if kind == "clients":
        return ClientEntity(client_id=known)
    client_id = (paths.entity_of(clients[1]) or DEFAULT) if clients else None
    return ClientEntity(user=known, client_id=client_id)
