"""Describes and alters quotas of users, clients and addresses (KIP-546)."""

from collections.abc import Mapping
from typing import TypeAlias

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from penstock.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

QuotaEntity: TypeAlias = Mapping[str, str | None]
"""Names by type (`user`, `client-id`, `ip`); None means the default of the type."""
EXACT, DEFAULT, ANY_NAME = 0, 1, 2


async def describe_quotas(
    client: Client,
    wanted: Mapping[str, str | None],
    *,
    any_name: frozenset[str] = frozenset(),
    strict: bool = True,
) -> list[tuple[dict[str, str | None], dict[str, float]]]:
    """The entities that match exactly, with their quotas; types in `any_name` match any name.

    Without `strict`, entities with further parts match too, so that an empty filter finds all.
    """
    components = [
        ComponentData(
            entity_type=kind,
            match_type=ANY_NAME if kind in any_name else DEFAULT if name is None else EXACT,
            match=None if kind in any_name else name,
        )
        for kind, name in wanted.items()
    ]

    def raise_refusal(response: DescribeClientQuotasResponse) -> None:
        check(response.error_code, "quotas", response.error_message)

    response = await client.call(
        DescribeClientQuotasRequest(components=components, strict=strict),
        DescribeClientQuotasResponse,
        check=raise_refusal,
    )
    return [
        (
            {each.entity_type: each.entity_name for each in entry.entity},
            {each.key: each.value for each in entry.values},
        )
        for entry in response.entries or ()
    ]


async def alter_quotas(
    client: Client, entity: QuotaEntity, changes: Mapping[str, float | None]
) -> None:
    """Set quotas; None removes one."""
    entry = EntryData(
        entity=[EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            OpData(key=key, value=0.0 if value is None else value, remove=value is None)
            for key, value in changes.items()
        ],
    )

    def raise_refusal(response: AlterClientQuotasResponse) -> None:
        for each in response.entries:
            check(each.error_code, "quotas", each.error_message)

    await client.call(
        AlterClientQuotasRequest(entries=[entry]), AlterClientQuotasResponse, check=raise_refusal
    )
