"""AlterUserScramCredentials (key 51); written by codegen."""

from penstock.wire.schema import Message, int8, int16, int32


class ScramCredentialDeletion(Message):
    name: str = ""
    mechanism: int8 = 0


class ScramCredentialUpsertion(Message):
    name: str = ""
    mechanism: int8 = 0
    iterations: int32 = 0
    salt: bytes = b""
    salted_password: bytes = b""


class AlterUserScramCredentialsRequest(Message):
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []


class AlterUserScramCredentialsResult(Message):
    user: str = ""
    error_code: int16 = 0
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(Message):
    throttle_time_ms: int32 = 0
    results: list[AlterUserScramCredentialsResult] = []
