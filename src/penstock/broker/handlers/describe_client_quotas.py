"""DescribeClientQuotas (key 48, v0-v1): the quotas of entities that match a filter (KIP-546).

Refused: types that are unknown or named twice; a name with a match type that takes none, or the
other way round; addresses together with users or client ids.
"""

from collections.abc import Iterable

from penstock.broker.context import Context
from penstock.broker.quotas.limits import QuotaType, bound_of
from penstock.errors import ErrorCode, InvalidRequest, KafkaError
from penstock.metadata.client_entity import CLIENT_ID, IP, USER, ClientEntity
from penstock.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)

EXACT, DEFAULT, SPECIFIED = range(3)


class UnsupportedEntityType(KafkaError):
    """The entity type is not a user, a client id or an address."""

    code = ErrorCode.UNSUPPORTED_VERSION


def describe_client_quotas(
    request: DescribeClientQuotasRequest, ctx: Context
) -> DescribeClientQuotasResponse:
    try:
        check(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(
            error_code=error.code, error_message=str(error), entries=None
        )
    found = []
    for entity, given in ctx.services.cluster.image.client_configs.items():
        if not matches(entity, request.components, strict=request.strict):
            continue
        values = [
            ValueData(key=kind, value=bound)
            for kind in QuotaType
            if (bound := bound_of(given.get(kind))) is not None
        ]
        if values:
            found.append(EntryData(entity=described(entity), values=values))
    return DescribeClientQuotasResponse(entries=found)


def check(components: Iterable[ComponentData]) -> None:
    seen: set[str] = set()
    for each in components:
        kind = each.entity_type
        if not kind:
            raise InvalidRequest("Invalid empty entity type.")
        if kind in seen:
            raise InvalidRequest(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in {USER, CLIENT_ID, IP}:
            raise UnsupportedEntityType(f"Unsupported entity type {kind}")
        check_match(each)
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise InvalidRequest(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )


def check_match(component: ComponentData) -> None:
    kind, name = component.match_type, component.match
    if kind not in {EXACT, DEFAULT, SPECIFIED}:
        raise InvalidRequest(f"Unknown match type {kind}")
    if kind == EXACT and name is None:
        raise InvalidRequest("Request specified MATCH_TYPE_EXACT, but set match string to null.")
    if kind != EXACT and name is not None:
        named = "DEFAULT" if kind == DEFAULT else "SPECIFIED"
        raise InvalidRequest(
            f"Request specified MATCH_TYPE_{named}, but also specified a match string."
        )


def matches(entity: ClientEntity, components: list[ComponentData], *, strict: bool) -> bool:
    parts = dict(entity.parts())
    if strict and len(parts) != len(components):
        return False
    return all(
        each.entity_type in parts
        and (each.match_type == SPECIFIED or parts[each.entity_type] == each.match)
        for each in components
    )


def described(entity: ClientEntity) -> list[EntityData]:
    return [EntityData(entity_type=kind, entity_name=name) for kind, name in entity.parts()]
