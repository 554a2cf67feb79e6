"""Changes of ACLs, users and quotas."""

import secrets
from typing import Literal

from msgspec import Struct, field

from penstock.advice.access_rules import filter_of, new_rule
from penstock.client.acls import create_acl, delete_acls
from penstock.client.quotas import alter_quotas
from penstock.client.scram_credentials import (
    NewScramCredential,
    alter_scram_credentials,
    describe_scram_users,
)
from penstock.console.access_reads import DEFAULT
from penstock.console.change import Change, Doing, Done
from penstock.errors import ConfigError
from penstock.security.scram import SALT_BYTES, ScramMechanism, salted

PAGE = "/access"
ITERATIONS = 8192
MECHANISMS = {each.mechanism: each for each in ScramMechanism}


class RuleCreate(Struct, frozen=True, kw_only=True):
    """`resource` is TYPE:NAME, such as topic:payments, topic:pay* for a prefix, or cluster."""

    principal: str
    operation: str
    resource: str
    permission: Literal["allow", "deny"] = "allow"
    host: str = "*"


async def create_rule(doing: Doing, wanted: RuleCreate) -> Done:
    deny = wanted.permission == "deny"
    rule = new_rule(
        wanted.principal, wanted.operation, wanted.resource, deny=deny, host=wanted.host
    )
    await create_acl(doing.client, rule)
    return Done(f"{rule.principal}: {wanted.operation} on {wanted.resource}", PAGE)


class RuleDelete(Struct, frozen=True, kw_only=True):
    """The ACL to delete; all fields must match exactly."""

    principal: str
    operation: str
    resource: str
    permission: Literal["allow", "deny"]
    host: str


async def delete_rule(doing: Doing, wanted: RuleDelete) -> Done:
    deny = wanted.permission == "deny"
    rule = new_rule(
        wanted.principal, wanted.operation, wanted.resource, deny=deny, host=wanted.host
    )
    exact = filter_of(wanted.principal, wanted.resource)
    exact = type(exact)(
        resource_type=exact.resource_type,
        name=exact.name,
        pattern=exact.pattern,
        principal=rule.principal,
        host=rule.host,
        operation=rule.operation,
        permission=rule.permission,
    )
    if not await delete_acls(doing.client, exact):
        raise ConfigError("there is no such rule")
    return Done(f"deleted a rule of {rule.principal}", PAGE)


class UserAlter(Struct, frozen=True, kw_only=True):
    """A SCRAM user and its new password."""

    name: str
    password: str
    mechanism: Literal["SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"


async def alter_user(doing: Doing, wanted: UserAlter) -> Done:
    if not wanted.password:
        raise ConfigError("password is empty: anybody could log in with it")
    salt = secrets.token_bytes(SALT_BYTES)
    key = salted(MECHANISMS[wanted.mechanism], wanted.password, salt, ITERATIONS)
    new = NewScramCredential(ITERATIONS, salt, key)
    await alter_scram_credentials(doing.client, wanted.name, {wanted.mechanism: new})
    return Done(f"{wanted.name} can log in by {wanted.mechanism}", PAGE)


class UserDelete(Struct, frozen=True, kw_only=True):
    """Deletes all SCRAM credentials of a user."""

    name: str


async def delete_user(doing: Doing, wanted: UserDelete) -> Done:
    found = await describe_scram_users(doing.client, [wanted.name])
    if not found:
        raise ConfigError(f"no user {wanted.name} logs in by SCRAM")
    await alter_scram_credentials(doing.client, wanted.name, dict.fromkeys(found[wanted.name]))
    return Done(f"deleted {wanted.name}", PAGE)


class QuotaAlter(Struct, frozen=True, kw_only=True):
    """The entity is `user`, `client_id`, both, or `ip`; <default> applies to entities without a
    quota of their own.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    limits: dict[str, float] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)


async def alter_quota(doing: Doing, wanted: QuotaAlter) -> Done:
    given = {"user": wanted.user, "client-id": wanted.client_id, "ip": wanted.ip}
    entity = {
        kind: None if name == DEFAULT else name for kind, name in given.items() if name is not None
    }
    if not entity or ("ip" in entity and len(entity) > 1):
        raise ConfigError("say whose quota: user, client_id, both, or ip")
    changes: dict[str, float | None] = {**wanted.limits, **dict.fromkeys(wanted.unset)}
    if not changes:
        raise ConfigError("nothing to change: give limits or unset")
    await alter_quotas(doing.client, entity, changes)
    return Done(f"changed {', '.join(changes)}", PAGE)


ACCESS = (
    Change("acl.create", "POST", "/api/v1/acls", "Allow or deny.", RuleCreate, create_rule),
    Change("acl.delete", "POST", "/api/v1/acls/delete", "Delete a rule.", RuleDelete, delete_rule),
    Change(
        "user.alter",
        "POST",
        "/api/v1/users",
        "Create a user, or give it a new password.",
        UserAlter,
        alter_user,
    ),
    Change(
        "user.delete", "POST", "/api/v1/users/delete", "Delete a user.", UserDelete, delete_user
    ),
    Change("quota.alter", "POST", "/api/v1/quotas", "Change quotas.", QuotaAlter, alter_quota),
)
