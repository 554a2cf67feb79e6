"""ExpireDelegationToken (key 40, v1-v2): change a token's expiry, or remove the token (KIP-48).

The token is named by its HMAC; a negative period removes it at once.
Refused: clients that are not logged in, or logged in by a token; clients other than owner,
requester and renewers; unknown and expired tokens.
"""

from penstock.broker.context import Context
from penstock.broker.translate.token_requests import check_requester
from penstock.errors import KafkaError
from penstock.security.delegation_token import NEVER_MS
from penstock.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)


async def expire_delegation_token(
    request: ExpireDelegationTokenRequest, ctx: Context
) -> ExpireDelegationTokenResponse:
    tokens = ctx.services.delegation_tokens
    try:
        check_requester(ctx)
        end_ms = await tokens.expire(
            request.hmac, ctx.peer.principal, request.expiry_time_period_ms
        )
    except KafkaError as error:
        return ExpireDelegationTokenResponse(error_code=error.code, expiry_timestamp_ms=NEVER_MS)
    return ExpireDelegationTokenResponse(expiry_timestamp_ms=end_ms)
