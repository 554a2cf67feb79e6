"""SaslAuthenticate (key 36, v0-v2): a client's part of a login on a SASL listener.

`broker/net/login.py` answers it after a SaslHandshake. This handler gets it only if no handshake
came before.
Refused: always.
"""

from penstock.broker.context import Context
from penstock.errors import ErrorCode
from penstock.wire.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)


def sasl_authenticate(_request: SaslAuthenticateRequest, _ctx: Context) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=ErrorCode.ILLEGAL_SASL_STATE,
        error_message="SaslAuthenticate request received after successful authentication",
    )
