"""RenewDelegationToken (key 39, v1-v2): extend a token's expiry (KIP-48).

The token is named by its HMAC; negative periods mean `delegation.token.expiry.time.ms`.
Refused: clients that are not logged in, or logged in by a token; clients other than owner,
requester and renewers; unknown and expired tokens.
"""

from penstock.broker.context import Context
from penstock.broker.translate.token_requests import check_requester
from penstock.errors import KafkaError
from penstock.security.delegation_token import NEVER_MS
from penstock.wire.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)


async def renew_delegation_token(
    request: RenewDelegationTokenRequest, ctx: Context
) -> RenewDelegationTokenResponse:
    tokens = ctx.services.delegation_tokens
    try:
        check_requester(ctx)
        end_ms = await tokens.renew(request.hmac, ctx.peer.principal, request.renew_period_ms)
    except KafkaError as error:
        return RenewDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NEVER_MS)
    return RenewDelegationTokenResponse(expiry_timestamp_ms=end_ms)
