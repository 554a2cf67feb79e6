"""`penstock acl`: who may do what, and why."""

from collections.abc import Mapping
from typing import TypeVar

import click

from penstock.advice.access_rules import acl_of, filter_of, new_rule
from penstock.cli.frame.command import Noun
from penstock.cli.frame.terminal import confirm
from penstock.cli.output import FORMAT, Column, is_data, print_json, print_rows
from penstock.cli.remote import Remote, remote
from penstock.client.acls import (
    AclBindingFilter,
    create_acl,
    delete_acls,
    list_acls,
)
from penstock.client.cluster import Client
from penstock.client.configs import Resource, describe_configs
from penstock.config.address import canonical
from penstock.config.resource_type import ConfigResourceType
from penstock.counted import counted
from penstock.errors import ConfigError
from penstock.security.acl import (
    AclOperation,
    PatternType,
    ResourcePattern,
    ResourceType,
    Verdict,
)
from penstock.security.acl_text import (
    check_known,
    operation_of,
    principal_of,
    resource_of,
    row,
    text_of,
)
from penstock.security.acls import Acls
from penstock.security.principal import Principal, super_users

T = TypeVar("T")
RESOURCE_HELP = "TYPE:NAME, such as topic:payments, group:* or topic:pay* for a prefix; cluster."


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
    new = new_rule(principal, operation, resource, deny=deny, host=host)
    remote.run(lambda client: create_acl(client, new))
    print_rows([row(acl_of(new))], COLUMNS)


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
        confirm(f"Delete {counted(len(found), 'access rule')}?")
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

    Uses the broker's own code, with its current ACLs and settings.
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
    if what is AclOperation.IDEMPOTENT_WRITE and not verdict.allowed:
        # The broker does the same when a producer requests its id (KIP-679).
        through = acls.decide_any(who, canonical(host), AclOperation.WRITE, ResourceType.TOPIC)
        if through.allowed:
            verdict, why = through, any_topic(through)
    decided = None if verdict.acl is None else row(verdict.acl)
    if is_data():
        print_json({"allowed": verdict.allowed, "reason": why, "rule": decided})
        return
    click.echo(f"{'allowed' if verdict.allowed else 'denied'}: {why}")
    if decided is not None:
        print_rows([decided], COLUMNS)


def any_topic(verdict: Verdict) -> str:
    who_may = "a user that may write to some topic may write idempotently"
    if verdict.acl is not None:
        return f"{who_may}, and this rule allows that"
    return f"{who_may}, and allow.everyone.if.no.acl.found is true"


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
        return f"there are rules for {text_of(of)}, and none of them allows it to {who}"
    setting = "allow.everyone.if.no.acl.found"
    return f"there is no rule for {text_of(of)}, and {setting} is {str(verdict.allowed).lower()}"
