"""Describes and alters the SCRAM credentials of users (KIP-554)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused, check
from penstock.client.route import CONTROLLER
from penstock.errors import ErrorCode
from penstock.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from penstock.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

NUMBERS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""Mechanisms, as numbered in these requests."""


@dataclass(frozen=True, slots=True)
class NewScramCredential:
    """A password as sent to brokers: salted, never in clear text."""

    iterations: int
    salt: bytes
    salted_password: bytes


async def describe_scram_users(
    client: Client, users: Iterable[str] | None = None
) -> dict[str, dict[str, int]]:
    """Iterations by mechanism, by user; None means all users. Users without any are left out."""
    names = {number: name for name, number in NUMBERS.items()}

    def raise_refusal(response: DescribeUserScramCredentialsResponse) -> None:
        check(response.error_code, "users", response.error_message)
        for each in response.results:
            if each.error_code != ErrorCode.RESOURCE_NOT_FOUND:
                check(each.error_code, f"user {each.user}", each.error_message)

    response = await client.call(
        DescribeUserScramCredentialsRequest(
            users=None if users is None else [UserName(name=each) for each in users]
        ),
        DescribeUserScramCredentialsResponse,
        to=CONTROLLER,
        check=raise_refusal,
    )
    return {
        each.user: {
            names.get(info.mechanism, "unknown"): info.iterations for info in each.credential_infos
        }
        for each in response.results
        if each.credential_infos
    }


async def alter_scram_credentials(
    client: Client, user: str, changes: Mapping[str, NewScramCredential | None]
) -> None:
    """Set a user's credentials by mechanism; None deletes one."""
    request = AlterUserScramCredentialsRequest(
        deletions=[
            ScramCredentialDeletion(name=user, mechanism=NUMBERS[mechanism])
            for mechanism, new in changes.items()
            if new is None
        ],
        upsertions=[
            ScramCredentialUpsertion(
                name=user,
                mechanism=NUMBERS[mechanism],
                iterations=new.iterations,
                salt=new.salt,
                salted_password=new.salted_password,
            )
            for mechanism, new in changes.items()
            if new is not None
        ],
    )

    def raise_refusal(response: AlterUserScramCredentialsResponse) -> None:
        for each in response.results:
            if each.error_code:
                raise BrokerRefused(each.error_code, f"user {user}", each.error_message)

    await client.call(
        request, AlterUserScramCredentialsResponse, to=CONTROLLER, check=raise_refusal
    )
