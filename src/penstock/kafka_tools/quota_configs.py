"""`kafka-configs.sh` for users, clients and IPs: quotas, and SCRAM credentials of users."""

import re
import secrets
from collections.abc import Mapping, Sequence

from penstock.client.cluster import Client
from penstock.client.quotas import alter_quotas, describe_quotas
from penstock.client.scram_credentials import (
    NUMBERS,
    NewScramCredential,
    alter_scram_credentials,
    describe_scram_users,
)
from penstock.kafka_tools.entities import Entity
from penstock.kafka_tools.parser import UsageError
from penstock.kafka_tools.tool import ToolError
from penstock.security.scram import SALT_BYTES, SCRAM_MECHANISMS, salted

QUOTA_TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}
SPELLED = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
ITERATIONS = 4096


def _checked(named: Sequence[Entity]) -> dict[str, str | None]:
    """Entity names by quota entity type; "", a default, becomes None."""
    types = [each.type for each in named]
    if len(types) != len(set(types)) or ("ips" in types and len(types) > 1):
        raise UsageError("Only users and clients can be named together")
    return {QUOTA_TYPES[each.type]: each.name or None for each in named}


async def alter(client: Client, named: Sequence[Entity], changes: Mapping[str, str | None]) -> None:
    entity = _checked(named)
    passwords = {name: text for name, text in changes.items() if name in NUMBERS}
    quotas = {name: _amount(name, text) for name, text in changes.items() if name not in NUMBERS}
    if passwords:
        user = entity.get("user")
        if len(entity) > 1 or user is None:
            raise ToolError(
                "SCRAM credentials are of one user: use --entity-type users --entity-name NAME"
            )
        await alter_scram_credentials(
            client, user, {name: _credential(name, text) for name, text in passwords.items()}
        )
    if quotas:
        await alter_quotas(client, entity, quotas)
    last = named[-1]
    if last.name:
        print(f"Completed updating config for {last.singular} {last.name}.")
    else:
        print(f"Completed updating default config for {last.type} in the cluster.")


def _amount(name: str, text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        raise ToolError(f"Cannot parse quota configuration value for {name}: {text}") from None


def _credential(mechanism: str, text: str | None) -> NewScramCredential | None:
    """Parse `[iterations=8192,password=secret]`."""
    if text is None:
        return None
    match = re.fullmatch(r"(?:iterations=(\d+),)?password=(.*)", text)
    if match is None:
        raise ToolError(
            f"{mechanism}: must be [iterations=N,password=SECRET], without brackets "
            "for a password alone"
        )
    iterations, salt = int(match[1] or ITERATIONS), secrets.token_bytes(SALT_BYTES)
    password = salted(SCRAM_MECHANISMS[mechanism], match[2], salt, iterations)
    return NewScramCredential(iterations, salt, password)


async def describe(client: Client, named: Sequence[Entity]) -> None:
    entity = _checked(named)
    every = frozenset(QUOTA_TYPES[each.type] for each in named if each.name is None)
    for found, quotas in await describe_quotas(client, entity, any_name=every):
        values = ", ".join(f"{name}={value}" for name, value in sorted(quotas.items()))
        print(f"Quota configs for {_spelled(found)} are {values}")
    if list(entity) == ["user"] and named[0].name != "":
        users = None if named[0].name is None else [named[0].name]
        for user, iterations in (await describe_scram_users(client, users)).items():
            values = ", ".join(f"{name}=iterations={count}" for name, count in iterations.items())
            print(f"SCRAM credential configs for user-principal '{user}' are {values}")


def _spelled(entity: Mapping[str, str | None]) -> str:
    return ", ".join(
        f"the default {SPELLED[kind]}" if name is None else f"{SPELLED[kind]} '{name}'"
        for kind, name in entity.items()
    )
