"""AlterClientQuotas (key 49, v0-v1): set and remove quotas of users, client ids and addresses.

Each entity succeeds or fails on its own. The stored format is Kafka 3.9's: one node per entity.
Refused: entities without a part, with an unknown part or with an empty name; invalid addresses
(Kafka also takes host names), or addresses together with a user or client id; unknown keys; values
that are not above zero or, except for percentages and mutations, not whole; an entity named twice.
"""

import math
from collections import Counter
from collections.abc import Hashable
from ipaddress import ip_address
from typing import Final

from penstock.broker.context import Context
from penstock.broker.handling.turns import NAMES_A_PIECE, PARTITIONS_A_TURN
from penstock.broker.quotas.limits import QuotaType
from penstock.controller.configs import AlterOperation, ClientResource, ConfigAlteration
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.loop import with_turns
from penstock.metadata.client_entity import CLIENT_ID, DEFAULT, IP, USER, ClientEntity
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
    ResponseEntryData,
)

LARGEST = {
    QuotaType.PRODUCE: (2.0**63, "a LONG"),
    QuotaType.FETCH: (2.0**63, "a LONG"),
    QuotaType.CONNECTION: (2.0**31 - 1, "an INT"),
}
"""The limits of whole-number quotas; the others may be any number."""
NEARLY_WHOLE = 1e-6
KEYS: Final[frozenset[str]] = frozenset(QuotaType)


async def alter_client_quotas(
    request: AlterClientQuotasRequest, ctx: Context
) -> AlterClientQuotasResponse:
    named = Counter[Hashable]()
    async for entry in with_turns(request.entries, PARTITIONS_A_TURN):
        named[names(entry.entity)] += 1
    results = []
    async for entry in with_turns(request.entries, NAMES_A_PIECE):
        code, text = ErrorCode.NONE, None
        try:
            entity = entity_of(entry.entity)
            if named[names(entry.entity)] > 1:
                raise InvalidRequest(f"Ignoring duplicate entity {entity}")
            altered = alterations(entity, entry)
            await ctx.services.control.controller.alter_config(
                ClientResource(entity), altered, validate_only=request.validate_only
            )
        except KafkaError as error:
            code, text = error.code, str(error)
        results.append(ResponseEntryData(error_code=code, error_message=text, entity=entry.entity))
    return AlterClientQuotasResponse(entries=results)


def names(entity: list[EntityData]) -> frozenset[tuple[str, str | None]]:
    return frozenset((each.entity_type, each.entity_name) for each in entity)


def entity_of(parts: list[EntityData]) -> ClientEntity:
    if not parts:
        raise InvalidRequest("Invalid empty client quota entity")
    found: dict[str, str] = {}
    for each in parts:
        if each.entity_type not in {USER, CLIENT_ID, IP}:
            raise InvalidRequest(f"Unhandled client quota entity type: {each.entity_type}")
        if each.entity_name == "":
            raise InvalidRequest(f"Empty {each.entity_type} not supported")
        found[each.entity_type] = DEFAULT if each.entity_name is None else each.entity_name
    ip = found.get(IP)
    if ip is not None and len(found) > 1:
        raise InvalidRequest(
            "Invalid quota entity combination, IP entity shouldnot be combined with User or "
            "ClientId"
        )
    if ip and not is_address(ip):
        raise InvalidRequest(f"{ip} is not a valid IP or resolvable host.")
    return ClientEntity(found.get(USER), found.get(CLIENT_ID), ip)


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def alterations(entity: ClientEntity, entry: EntryData) -> list[ConfigAlteration]:
    keys = [op.key for op in entry.ops]
    if len(set(keys)) < len(keys):
        raise InvalidRequest(f"Ignoring duplicate entity {entity}")
    return [
        ConfigAlteration(op.key, AlterOperation.DELETE)
        if op.remove
        else ConfigAlteration(op.key, AlterOperation.SET, stored_text(entity, op))
        for op in entry.ops
        # A user's credentials are stored beside its quotas; removing a key that is not a quota does
        # nothing.
        if op.key in KEYS or not op.remove
    ]


def stored_text(entity: ClientEntity, op: OpData) -> str:
    """The value as Kafka 3.9 writes it."""
    if op.key not in KEYS or (op.key == QuotaType.CONNECTION) != (entity.ip is not None):
        raise InvalidRequest(f"Invalid configuration key {op.key}")
    if math.isnan(op.value) or op.value <= 0:
        raise InvalidRequest(f"Quota {op.key} must be greater than 0")
    if op.key not in LARGEST:
        return repr(op.value)
    most, kind = LARGEST[QuotaType(op.key)]
    if op.value > most:
        raise InvalidRequest(f"Proposed value for {op.key} is too large for {kind}.")
    if abs(math.fmod(op.value, 1)) > NEARLY_WHOLE:
        raise InvalidRequest(f"{op.key} cannot be a fractional value.")
    return str(min(int(op.value + NEARLY_WHOLE), 2**63 - 1))
