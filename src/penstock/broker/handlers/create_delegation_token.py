"""CreateDelegationToken (key 38, v1-v3): create a token by which programs log in as a user
(KIP-48).

Refused: clients that are not logged in, or logged in by a token; another owner without CreateTokens
on it; owners and renewers that are not users; all without `delegation.token.secret.key`.
"""

from functools import partial

from penstock.broker.context import Context
from penstock.broker.translate.token_requests import check_requester, may
from penstock.errors import ErrorCode, KafkaError
from penstock.security.acl import AclOperation, ResourceType
from penstock.security.delegation_token import NEVER_MS, TokenRefused
from penstock.security.principal import USER, Principal
from penstock.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)


async def create_delegation_token(
    request: CreateDelegationTokenRequest, ctx: Context
) -> CreateDelegationTokenResponse:
    requester = owner = ctx.peer.principal
    if request.owner_principal_name:
        owner = Principal(request.owner_principal_type or "", request.owner_principal_name)
    answer = partial(
        CreateDelegationTokenResponse,
        principal_type=owner.kind,
        principal_name=owner.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
    )
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    tokens = ctx.services.delegation_tokens
    try:
        check(owner, renewers, ctx)
        made = await tokens.create(owner, requester, renewers, request.max_lifetime_ms)
    except KafkaError as error:
        return answer(
            error_code=error.code,
            issue_timestamp_ms=NEVER_MS,
            expiry_timestamp_ms=NEVER_MS,
            max_timestamp_ms=NEVER_MS,
        )
    return answer(
        issue_timestamp_ms=made.issued_ms,
        expiry_timestamp_ms=made.expires_ms,
        max_timestamp_ms=made.max_ms,
        token_id=made.id,
        hmac=tokens.hmac(made),
    )


def check(owner: Principal, renewers: list[Principal], ctx: Context) -> None:
    check_requester(ctx)
    if owner != ctx.peer.principal and not may(
        ctx, AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)
    ):
        raise TokenRefused(
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, f"no tokens may be made for {owner}"
        )
    # A login by token is always a user. An owner of another type with the same name would bypass
    # ACLs that deny it.
    if any(each.kind != USER for each in (owner, *renewers)):
        raise TokenRefused(
            ErrorCode.INVALID_PRINCIPAL_TYPE, "owners and renewers must be of type User"
        )
