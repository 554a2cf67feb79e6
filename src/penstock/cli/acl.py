"""`penstock acl`: who may do what, and why."""

from collections.abc import Mapping
from typing import Any, TypeVar

import click

from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import confirm
from penstock.cli.output import FORMAT, Column, is_data, print_json, print_rows
from penstock.cli.remote import Remote, remote
from penstock.client.acls import (
    AclBinding,
    AclBindingFilter,
    create_acl,
    delete_acls,
    list_acls,
)
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.config.address import canonical
from penstock.config.resource_type import ConfigResourceType
from penstock.errors import ConfigError
from penstock.security.acl import (
    CLUSTER_NAME,
    OPERATIONS,
    AccessRule,
    Acl,
    AclOperation,
    Acls,
    PatternType,
    Permission,
    ResourcePattern,
    ResourceType,
    Verdict,
)
from penstock.security.principal import Principal, parse_principal, super_users
from penstock.security.principal import user as user_principal

T = TypeVar("T")
TYPES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user": ResourceType.USER,
}
TYPE_NAMES = {kind: name for name, kind in TYPES.items()}
OPERATION_NAMES = {
    each.name.lower().replace("_", "-"): each for each in AclOperation if each >= AclOperation.ALL
}
RESOURCE_HELP = "TYPE:NAME, such as topic:payments, group:* or topic:pay* for a prefix; cluster."


def resource_of(text: str) -> ResourcePattern:
    """`topic:payments`; a name that ends with a star is a prefix; `cluster` has no name."""
    kind, colon, name = text.partition(":")
    if kind not in TYPES:
        raise ConfigError(f"{kind!r} is no type of resource: use {', '.join(TYPES)}")
    if TYPES[kind] is ResourceType.CLUSTER:
        return ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME)
    if not colon or not name:
        raise ConfigError(f"{text!r} names no resource: write {kind}:NAME")
    if name.endswith("*") and name != "*":
        return ResourcePattern(TYPES[kind], name[:-1], PatternType.PREFIXED)
    return ResourcePattern(TYPES[kind], name)


def principal_of(text: str) -> Principal:
    """`User:bob`, or `bob` for short."""
    return parse_principal(text) or user_principal(text)


def operation_of(text: str) -> AclOperation:
    found = OPERATION_NAMES.get(text.lower().replace("_", "-"))
    if found is None:
        raise ConfigError(f"{text!r} is no operation: use {', '.join(OPERATION_NAMES)}")
    return found


def text_of(resource: ResourcePattern) -> str:
    kind = TYPE_NAMES.get(resource.type, str(resource.type))
    if resource.type is ResourceType.CLUSTER:
        return kind
    return f"{kind}:{resource.name}{'*' if resource.pattern is PatternType.PREFIXED else ''}"


def acl_of(found: AclBinding) -> Acl:
    resource = ResourcePattern(
        ResourceType(found.resource_type), found.name, PatternType(found.pattern)
    )
    operation, permission = AclOperation(found.operation), Permission(found.permission)
    return Acl(resource, AccessRule(found.principal, found.host, operation, permission))


def row(acl: Acl) -> dict[str, Any]:
    return {
        "principal": acl.rule.principal,
        "permission": acl.rule.permission.name.lower(),
        "operation": acl.rule.operation.name.lower().replace("_", "-"),
        "resource": text_of(acl.resource),
        "host": acl.rule.host,
    }


COLUMNS = tuple(
    Column(each.upper(), each)
    for each in ("principal", "permission", "operation", "resource", "host")
)


@click.group(cls=Noun)
def acl() -> None:
    """List, create, delete and explain access rules."""


@acl.command("list", example="penstock acl list --principal bob")
@click.option("--principal", metavar="USER", help="Only of this principal.")
@click.option("--resource", metavar="TYPE:NAME", help=f"Only of exactly this one: {RESOURCE_HELP}")
@FORMAT
@remote
def list_(remote: Remote, principal: str | None, resource: str | None, output: str) -> None:
    """List access rules."""
    del output
    wanted = filter_of(principal, resource)
    found = remote.run(lambda client: list_acls(client, wanted))
    print_rows([row(acl_of(each)) for each in found], COLUMNS)


def filter_of(principal: str | None, resource: str | None) -> AclBindingFilter:
    who = None if principal is None else str(principal_of(principal))
    if resource is None:
        return AclBindingFilter(principal=who)
    of = resource_of(resource)
    return AclBindingFilter(principal=who, resource_type=of.type, name=of.name, pattern=of.pattern)


@acl.command(
    "create",
    example=["penstock acl create bob read topic:payments", "penstock acl create bob all topic:b*"],
)
@click.argument("principal", metavar="USER")
@click.argument("operation", metavar="OPERATION")
@click.argument("resource", metavar="RESOURCE")
@click.option("--deny", is_flag=True, help="Deny it; a deny wins over every allow.")
@click.option("--host", default="*", show_default=True, help="Only from this address.")
@FORMAT
@remote
def create(
    remote: Remote,
    principal: str,
    operation: str,
    resource: str,
    deny: bool,
    host: str,
    output: str,
) -> None:
    """Allow a user an operation on a resource, such as topic:payments, or deny it."""
    del output
    of, what = resource_of(resource), operation_of(operation)
    check_known(of.type, what)
    permission = Permission.DENY if deny else Permission.ALLOW
    new = AclBinding(
        of.type, of.name, of.pattern, str(principal_of(principal)), host, what, permission
    )
    remote.run(lambda client: create_acl(client, new))
    print_rows([row(acl_of(new))], COLUMNS)


def check_known(kind: ResourceType, operation: AclOperation) -> None:
    known = OPERATIONS[kind]
    if operation is not AclOperation.ALL and operation not in known:
        names = sorted(each.name.lower().replace("_", "-") for each in known)
        raise ConfigError(f"a {TYPE_NAMES[kind]} knows only {', '.join(names)}, all")


@acl.command("delete", example="penstock acl delete --principal bob --yes")
@click.option("--principal", metavar="USER", help="Of this principal.")
@click.option("--resource", metavar="TYPE:NAME", help=f"Of exactly this one: {RESOURCE_HELP}")
@FORMAT
@remote
def delete(remote: Remote, principal: str | None, resource: str | None, output: str) -> None:
    """Delete the access rules of a principal, of a resource, or of both together."""
    del output
    if principal is None and resource is None:
        raise click.UsageError("say which: --principal, --resource, or both")
    wanted = filter_of(principal, resource)
    found = remote.run(lambda client: list_acls(client, wanted))
    if found:
        confirm(f"Delete {len(found)} access rules?")
        found = remote.run(lambda client: delete_acls(client, wanted))
    print_rows([row(acl_of(each)) for each in found], COLUMNS)


@acl.command("explain", example="penstock acl explain bob read topic:payments")
@click.argument("principal", metavar="USER")
@click.argument("operation", metavar="OPERATION")
@click.argument("resource", metavar="RESOURCE")
@click.option("--host", default="127.0.0.1", show_default=True, help="The client's address.")
@FORMAT
@remote
def explain(
    remote: Remote, principal: str, operation: str, resource: str, host: str, output: str
) -> None:
    """Say whether a user may do something, and which rule decides.

    By the broker's own rules, from its ACLs and settings as they are now.
    """
    del output
    who, what, of = principal_of(principal), operation_of(operation), resource_of(resource)
    if of.pattern is PatternType.PREFIXED or of.name == "*":
        raise ConfigError(f"{resource!r} is a pattern: name one resource")
    check_known(of.type, what)

    async def work(client: Client) -> tuple[Acls, Mapping[str, str | None]]:
        broker = min((await client.cluster()).brokers)
        wanted = Resource(ConfigResourceType.BROKER, str(broker))
        settings = await describe_configs(client, wanted)
        texts = {name: each.value for name, each in settings.items()}
        supers = super_users(texts.get("super.users") or "")
        everyone = texts.get("allow.everyone.if.no.acl.found") == "true"
        found = await list_acls(client, AclBindingFilter())
        return Acls(map(acl_of, found), supers, allow_if_none=everyone), texts

    acls, texts = remote.run(work)
    verdict = acls.decide(who, canonical(host), what, of.type, of.name)
    supers = super_users(texts.get("super.users") or "")
    why = reason(verdict, acls, who, of, supers)
    decided = None if verdict.acl is None else row(verdict.acl)
    if is_data():
        print_json({"allowed": verdict.allowed, "reason": why, "rule": decided})
        return
    click.echo(f"{'allowed' if verdict.allowed else 'denied'}: {why}")
    if decided is not None:
        print_rows([decided], COLUMNS)


def reason(
    verdict: Verdict,
    acls: Acls,
    who: Principal,
    of: ResourcePattern,
    supers: frozenset[Principal],
) -> str:
    if who in supers:
        return f"{who} is in super.users"
    if verdict.acl is not None:
        if not verdict.allowed:
            return "this rule denies it, and a deny wins"
        return "this rule allows it, and none denies it"
    about = [each for each in acls.all if each.resource.type is of.type]
    if any(each.resource.matches(of.name) for each in about):
        return f"rules speak of {text_of(of)}, and none of them allows it to {who}"
    setting = "allow.everyone.if.no.acl.found"
    return f"no rule speaks of {text_of(of)}, and {setting} is {str(verdict.allowed).lower()}"
