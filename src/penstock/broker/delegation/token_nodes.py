"""The ZooKeeper format of delegation tokens, as in Kafka 3.9. Pure."""

from typing import Final
from urllib.parse import unquote

import msgspec

from penstock.metadata import paths
from penstock.metadata.records import decode_or_skip, encode
from penstock.metadata.store import Node
from penstock.security.delegation_token import DelegationToken
from penstock.security.principal import Principal, parse_principal

TOKENS: Final = "/delegation_token/tokens"
CHANGES: Final = "/delegation_token/token_changes"
CHANGE_PREFIX: Final = f"{CHANGES}/token_change_"
VERSION: Final = 3


class StoredToken(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The content of a token's node. Principal names are URL-encoded."""

    version: int = VERSION
    owner: str
    token_requester: str | None = None
    """Since version 3; earlier tokens were requested by their owner."""
    renewers: list[str] = []
    issue_timestamp: int
    max_timestamp: int
    expiry_timestamp: int
    token_id: str


def path_of(token_id: str) -> str:
    return f"{TOKENS}/{token_id}"


def node_data(token: DelegationToken) -> bytes:
    return encode(
        StoredToken(
            owner=paths.sanitized(str(token.owner)),
            token_requester=paths.sanitized(str(token.requester)),
            renewers=[paths.sanitized(str(each)) for each in token.renewers],
            issue_timestamp=token.issued_ms,
            max_timestamp=token.max_ms,
            expiry_timestamp=token.expires_ms,
            token_id=token.id,
        )
    )


def token_in(node: Node) -> DelegationToken | None:
    """The token in a node; None if it cannot be read."""
    stored = decode_or_skip(StoredToken, node)
    if stored is None or path_of(stored.token_id) != node.path:
        return None
    owner = _principal(stored.owner)
    requester = _principal(stored.token_requester or stored.owner)
    renewers = [_principal(each) for each in stored.renewers]
    if owner is None or requester is None:
        return None
    return DelegationToken(
        stored.token_id,
        owner,
        requester,
        tuple(each for each in renewers if each is not None),
        stored.issue_timestamp,
        stored.max_timestamp,
        stored.expiry_timestamp,
    )


def _principal(text: str) -> Principal | None:
    return parse_principal(unquote(text))
