"""Creates, renews, expires and lists delegation tokens (KIP-48)."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.client.cluster import Client
from penstock.client.errors import check
from penstock.wire.messages import create_delegation_token as creating
from penstock.wire.messages import describe_delegation_token as describing
from penstock.wire.messages import expire_delegation_token as expiring
from penstock.wire.messages import renew_delegation_token as renewing

ABOUT = "delegation token"


@dataclass(frozen=True, slots=True)
class IssuedToken:
    """A token. Its id and HMAC log in as its owner."""

    id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    hmac: bytes = field(repr=False)

    @property
    def password(self) -> str:
        return b64encode(self.hmac).decode()


async def create_token(
    client: Client, owner: str | None, renewers: Sequence[str], max_lifetime_ms: int
) -> IssuedToken:
    """A new token for the owner, `User:name`; None: for ourselves."""
    kind, _, name = (owner or "").partition(":")
    request = creating.CreateDelegationTokenRequest(
        owner_principal_type=kind or None,
        owner_principal_name=name or None,
        renewers=[creating.CreatableRenewers(*each.split(":", 1)) for each in renewers],
        max_lifetime_ms=max_lifetime_ms,
    )
    made = await client.call(
        request,
        creating.CreateDelegationTokenResponse,
        check=lambda response: check(response.error_code, ABOUT),
    )
    return IssuedToken(
        made.token_id,
        f"{made.principal_type}:{made.principal_name}",
        f"{made.token_requester_principal_type}:{made.token_requester_principal_name}",
        tuple(renewers),
        made.issue_timestamp_ms,
        made.expiry_timestamp_ms,
        made.max_timestamp_ms,
        made.hmac,
    )


async def list_tokens(client: Client) -> list[IssuedToken]:
    """The tokens that we are allowed to see."""
    found = await client.call(
        describing.DescribeDelegationTokenRequest(owners=None),
        describing.DescribeDelegationTokenResponse,
        check=lambda response: check(response.error_code, ABOUT),
    )
    return [
        IssuedToken(
            each.token_id,
            f"{each.principal_type}:{each.principal_name}",
            f"{each.token_requester_principal_type}:{each.token_requester_principal_name}",
            tuple(f"{one.principal_type}:{one.principal_name}" for one in each.renewers),
            each.issue_timestamp,
            each.expiry_timestamp,
            each.max_timestamp,
            each.hmac,
        )
        for each in sorted(found.tokens, key=lambda token: token.token_id)
    ]


async def renew_token(client: Client, hmac: bytes, period_ms: int) -> int:
    """Renew the token; returns its new expiry time."""
    response = await client.call(
        renewing.RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms),
        renewing.RenewDelegationTokenResponse,
        check=lambda response: check(response.error_code, ABOUT),
    )
    return response.expiry_timestamp_ms


async def expire_token(client: Client, hmac: bytes, period_ms: int) -> int:
    """Change the token's expiry time, and return it; a negative period removes the token."""
    response = await client.call(
        expiring.ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms),
        expiring.ExpireDelegationTokenResponse,
        check=lambda response: check(response.error_code, ABOUT),
    )
    return response.expiry_timestamp_ms
