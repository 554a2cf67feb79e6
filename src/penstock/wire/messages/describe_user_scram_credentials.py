"""DescribeUserScramCredentials (key 50); written by codegen."""

from penstock.wire.schema import Message, int8, int16, int32


class UserName(Message):
    name: str = ""


class DescribeUserScramCredentialsRequest(Message):
    users: list[UserName] | None = []


class CredentialInfo(Message):
    mechanism: int8 = 0
    iterations: int32 = 0


class DescribeUserScramCredentialsResult(Message):
    user: str = ""
    error_code: int16 = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = []


class DescribeUserScramCredentialsResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: int16 = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
