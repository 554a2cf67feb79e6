"""Authorized operations, as bits of Kafka's AclOperation codes."""

from penstock.broker.context import Context
from penstock.security.acl import CLUSTER_NAME, OPERATIONS, ResourceType

NOT_ASKED = -(2**31)


def operations(ctx: Context, kind: ResourceType, name: str) -> int:
    """The operations that the client may use on a resource; without an authorizer, all of them."""
    authorizer = ctx.services.authorizer
    if authorizer is None:
        return EVERYTHING[kind]
    return authorizer.access(ctx.peer, ctx.header.api.name).operations(kind, name)


def topic_operations(ctx: Context, name: str) -> int:
    return operations(ctx, ResourceType.TOPIC, name)


def group_operations(ctx: Context, name: str) -> int:
    return operations(ctx, ResourceType.GROUP, name)


def cluster_operations(ctx: Context) -> int:
    return operations(ctx, ResourceType.CLUSTER, CLUSTER_NAME)


EVERYTHING = {kind: sum(1 << each for each in known) for kind, known in OPERATIONS.items()}
