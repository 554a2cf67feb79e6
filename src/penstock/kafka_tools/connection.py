"""Finds the cluster from a tool's options, and runs a client for it."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from penstock.config.properties import properties as parsed
from penstock.errors import ConfigError
from penstock.kafka_tools.options import BROKER_LIST
from penstock.kafka_tools.parser import Arguments, UsageError

if TYPE_CHECKING:
    from penstock.client.cluster import Client

T = TypeVar("T")
TIMEOUT_MS = 30_000


def run(
    args: Arguments,
    work: "Callable[[Client], Awaitable[T]]",
    settings: Mapping[str, str] | None = None,
    *,
    client_id: str = "penstock-tools",
) -> T:
    """Run `work` with a client of the cluster; `settings` replace those of --command-config."""
    from penstock.client.address import parse_addresses  # late: `--help` needs no client
    from penstock.client.cluster import Client
    from penstock.client.route import ANY
    from penstock.client.security import NO_SECURITY, client_security

    given = command_settings(args) if settings is None else settings
    protected = any(name.startswith(("ssl.", "sasl.", "security.")) for name in given)
    security = client_security(given) if protected else NO_SECURITY
    addresses = parse_addresses(bootstrap(args, given))

    async def connected() -> T:
        async with Client(
            addresses,
            client_id=given.get("client.id", client_id),
            security=security,
            timeout_ms=TIMEOUT_MS,
        ) as client:
            await client.connection(ANY)  # fails at once if no broker is reachable
            return await work(client)

    return asyncio.run(connected())


def bootstrap(args: Arguments, settings: Mapping[str, str]) -> str:
    """The broker addresses, from whichever option names them."""
    given = args.find("bootstrap-server")
    if given is None and args.takes(BROKER_LIST):  # in other tools --broker-list has broker ids
        given = args.find("broker-list")
    if given is not None:
        return given
    zookeeper = args.find("zookeeper")
    if zookeeper is not None:
        return registered(zookeeper, settings)
    if "bootstrap.servers" in settings:
        return settings["bootstrap.servers"]
    raise UsageError('Missing required argument "[bootstrap-server]"')


def registered(connect: str, settings: Mapping[str, str]) -> str:
    """The brokers registered in ZooKeeper, with the listener that the client can use."""
    from penstock.metadata.zookeeper.registered import registered_brokers  # late: imports kazoo

    protocol = settings.get("security.protocol", "PLAINTEXT").upper()
    found = [
        f"[{each.host}]:{each.port}" if ":" in each.host else f"{each.host}:{each.port}"
        for broker in registered_brokers(connect, TIMEOUT_MS)
        for each in broker.endpoints
        if each.protocol.name == protocol
    ]
    if not found:
        raise ConfigError(f"no broker at {connect} has a listener with {protocol}")
    return ",".join(found)


def command_settings(
    args: Arguments, *files: str, properties: Iterable[str] = ()
) -> dict[str, str]:
    """The client settings of --command-config, or of files that other options name; then those of
    name=value options. Config providers replace `${…}`, as in Kafka's clients.
    """
    found: dict[str, str] = {}
    for name in ("command-config", *files):
        path = args.find(name)
        if path is not None:
            found |= read_properties(path, f"--{name}")
    for name in properties:
        found |= name_values(args.all(name), f"--{name}")
    if not any(name.startswith("config.providers") for name in found):
        return found
    from penstock.config.providers import provided  # late: rarely needed

    return provided(found, os.environ)


def read_properties(path: str, about: str) -> dict[str, str]:
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"{about} {path}: {error.strerror}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # Java's encoding of these files
    try:
        return {each.key: each.value for each in parsed(text)}
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def name_values(texts: Iterable[str], about: str) -> dict[str, str]:
    """Parse texts of the form name=value."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"{about} {text}: must be name=value")
        found[name.strip()] = value
    return found
