"""SaslHandshake (key 17, v0-v1): begins a login on a SASL listener.

`broker/net/login.py` answers it there, before any other request is served. This handler gets it
only on a listener without SASL, or after a login that does not expire.
Refused: always.
"""

from penstock.broker.context import Context
from penstock.errors import ErrorCode
from penstock.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(_request: SaslHandshakeRequest, _ctx: Context) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
