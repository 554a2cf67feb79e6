"""SaslHandshake (key 17); written by codegen."""

from penstock.wire.schema import Message, int16


class SaslHandshakeRequest(Message):
    mechanism: str = ""


class SaslHandshakeResponse(Message):
    error_code: int16 = 0
    mechanisms: list[str] = []
