"""Checks who may use the delegation token APIs at all."""

from penstock.broker.context import Context
from penstock.config.listener import SecurityProtocol
from penstock.errors import ErrorCode
from penstock.security.acl import AclOperation, ResourceType
from penstock.security.delegation_token import TokenRefused
from penstock.security.principal import ANONYMOUS


def check_requester(ctx: Context) -> None:
    """Refuse unauthenticated clients, and clients that logged in by a token: otherwise a token
    could create others, and never end.
    """
    peer = ctx.peer
    protocol = ctx.services.config.listener.protocols()[peer.listener]
    is_unknown = protocol is SecurityProtocol.PLAINTEXT or (
        protocol is SecurityProtocol.SSL and peer.principal == ANONYMOUS
    )
    if is_unknown or peer.by_token:
        raise TokenRefused(
            ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
            "tokens are for clients that log in otherwise",
        )


def may(ctx: Context, operation: AclOperation, kind: ResourceType, name: str) -> bool:
    """Whether ACLs allow the operation; without an authorizer everything is allowed."""
    authorizer = ctx.services.authorizer
    if authorizer is None:
        return True
    return authorizer.access(ctx.peer, ctx.header.api.name).may(operation, kind, name, logs=False)
