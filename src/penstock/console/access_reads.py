"""Reads ACLs, SCRAM users and client quotas."""

from collections.abc import Mapping

from msgspec import Struct

from penstock.advice.access_rules import acl_of
from penstock.client.acls import AclBindingFilter, list_acls
from penstock.client.errors import BrokerRefused
from penstock.client.quotas import describe_quotas
from penstock.client.scram_credentials import describe_scram_users
from penstock.console.watch import ClusterLook, ClusterWatch
from penstock.errors import ErrorCode
from penstock.security.acl_text import row

DEFAULT = "<default>"
Params = Mapping[str, str]


class Rule(Struct, frozen=True):
    """An ACL."""

    principal: str
    permission: str
    operation: str
    resource: str
    host: str


class ScramUser(Struct, frozen=True):
    """A user and its SCRAM mechanisms."""

    name: str
    mechanisms: list[str]


class Quota(Struct, frozen=True):
    """The quotas of a user, a client id or an IP address."""

    entity: dict[str, str]
    limits: dict[str, float]


class AccessPage(Struct, frozen=True):
    """`rules` is null if the brokers have no authorizer, so that every client may do everything."""

    rules: list[Rule] | None
    users: list[ScramUser]
    quotas: list[Quota]


async def access(watch: ClusterWatch, _: ClusterLook, __: Params) -> AccessPage:
    users = await describe_scram_users(watch.client)
    quotas = await describe_quotas(watch.client, {}, strict=False)
    return AccessPage(
        await rules(watch),
        [ScramUser(name, sorted(users[name])) for name in sorted(users)],
        [
            Quota({kind: name or DEFAULT for kind, name in entity.items()}, limits)
            for entity, limits in quotas
        ],
    )


async def rules(watch: ClusterWatch) -> list[Rule] | None:
    try:
        found = await list_acls(watch.client, AclBindingFilter())
    except BrokerRefused as error:
        if error.code is ErrorCode.SECURITY_DISABLED:
            return None
        raise
    return [Rule(**row(acl_of(each))) for each in found]
