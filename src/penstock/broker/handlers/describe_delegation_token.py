"""DescribeDelegationToken (key 41, v1-v3): the tokens that the client may see, with their HMACs.

Owner, requester and renewers see a token; so do others with Describe on it, or DescribeTokens on
its owner. A null list of owners means all tokens, an empty one means none.
Refused: clients that are not logged in, or logged in by a token; all without
`delegation.token.secret.key`.
"""

from penstock.broker.context import Context
from penstock.broker.translate.token_requests import check_requester, may
from penstock.errors import ErrorCode, KafkaError
from penstock.security.acl import AclOperation, ResourceType
from penstock.security.delegation_token import DelegationToken
from penstock.security.principal import Principal
from penstock.wire.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def describe_delegation_token(
    request: DescribeDelegationTokenRequest, ctx: Context
) -> DescribeDelegationTokenResponse:
    tokens = ctx.services.delegation_tokens
    try:
        check_requester(ctx)
    except KafkaError as error:
        return DescribeDelegationTokenResponse(error_code=error.code)
    if not tokens.is_on:
        return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    owners = None
    if request.owners is not None:
        owners = {Principal(each.principal_type, each.principal_name) for each in request.owners}
    return DescribeDelegationTokenResponse(
        tokens=[
            described(each, tokens.hmac(each))
            for each in tokens.all()
            if (owners is None or not owners.isdisjoint(each.principals)) and may_see(each, ctx)
        ]
    )


def may_see(token: DelegationToken, ctx: Context) -> bool:
    return (
        token.is_of(ctx.peer.principal)
        or may(ctx, AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id)
        or may(ctx, AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def described(token: DelegationToken, hmac: bytes) -> DescribedDelegationToken:
    return DescribedDelegationToken(
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        token_requester_principal_type=token.requester.kind,
        token_requester_principal_name=token.requester.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.max_ms,
        token_id=token.id,
        hmac=hmac,
        renewers=[DescribedDelegationTokenRenewer(each.kind, each.name) for each in token.renewers],
    )
