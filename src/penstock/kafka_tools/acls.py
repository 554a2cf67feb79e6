"""`kafka-acls.sh`: adds, removes and lists ACLs."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import command_settings, name_values, registered, run
from penstock.kafka_tools.options import BOOTSTRAP, COMMAND_CONFIG, Option, Table, flag, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.principals import principals
from penstock.kafka_tools.tool import Tool, ToolError

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.kafka_tools.acl_rules import AclResource, AclRule, Rules

ACTIONS = ("list", "add", "remove")
OPTIONS: Sequence[Option] = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    text("bootstrap-controller", "HOST:PORT", "KRaft controllers."),
    flag("add", "Add ACLs."),
    flag("remove", "Remove ACLs."),
    flag("list", "List ACLs; those of a resource by --topic, --group, --cluster and so on."),
    text("topic", "TOPIC", "A topic; * means all. Repeatable.", repeats=True),
    text("group", "GROUP", "A group; * means all. Repeatable.", repeats=True),
    text("transactional-id", "ID", "A transactional id; * means all.", repeats=True),
    text("delegation-token", "ID", "A delegation token; * means all.", repeats=True),
    text("user-principal", "TYPE:NAME", "A user, about whose tokens the ACL is.", repeats=True),
    flag("cluster", "The cluster."),
    text(
        "resource-pattern-type",
        "TYPE",
        "LITERAL or PREFIXED; to list and remove also ANY and MATCH.",
        default="LITERAL",
    ),
    text("allow-principal", "TYPE:NAME", "Who is allowed; User:* means everybody.", repeats=True),
    text("deny-principal", "TYPE:NAME", "Who is denied: that wins over allowed.", repeats=True),
    text("allow-host", "ADDRESS", "Only from there. [*]", repeats=True),
    text("deny-host", "ADDRESS", "Only from there. [*]", repeats=True),
    text("operation", "NAME", "What is allowed or denied. [All]", repeats=True),
    text("principal", "TYPE:NAME", "With --list: only its ACLs. Repeatable.", repeats=True),
    flag("producer", "What a producer needs: WRITE, DESCRIBE and CREATE of the topic."),
    flag("consumer", "What a consumer needs: READ and DESCRIBE of the topic, READ of the group."),
    flag("idempotent", "With --producer: what an idempotent producer needs of old brokers."),
    flag("force", "Ask no questions."),
    text("authorizer", "CLASS", "Accepted, without effect.", old=True),
    text(
        "authorizer-properties",
        "NAME=VALUE",
        "zookeeper.connect=HOST:PORT/CHROOT: the brokers registered there are used.",
        repeats=True,
        old=True,
    ),
    text("zk-tls-config-file", "FILE", "Accepted, without effect.", old=True),
)


def acls(args: Arguments) -> int:
    settings = _settings(args)
    _check(args)
    match args.given(ACTIONS):
        case ["list"]:
            work = _list
        case ["add"]:
            work = _add
        case _:
            work = _remove
    run(args, partial(work, args), settings)
    return 0


def _settings(args: Arguments) -> Mapping[str, str]:
    """The client settings. If an old command line names ZooKeeper, the brokers registered
    there are used.
    """
    settings = command_settings(args)
    given = name_values(args.all("authorizer-properties"), "--authorizer-properties")
    if args.has("bootstrap-server", "bootstrap-controller"):
        if args.has("bootstrap-server") and args.has("bootstrap-controller"):
            raise UsageError(
                "Only one of --bootstrap-server or --bootstrap-controller must be specified"
            )
        if args.has("bootstrap-controller"):
            raise ToolError("--bootstrap-controller: there is no KRaft; use --bootstrap-server")
    elif "zookeeper.connect" in given:
        settings["bootstrap.servers"] = registered(given["zookeeper.connect"], settings)
    elif "bootstrap.servers" not in settings:
        raise UsageError("One of --bootstrap-server or --bootstrap-controller must be specified")
    return settings


def _check(args: Arguments) -> None:
    if len(args.given(ACTIONS)) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    rights = ("allow-principal", "deny-principal", "allow-host", "deny-host")
    args.forbid("list", ("producer", "consumer", *rights))
    args.forbid("producer", ("operation", "deny-principal", "deny-host"))
    args.forbid("consumer", ("operation", "deny-principal", "deny-host"))
    if args.has("producer") and not args.has("topic"):
        raise UsageError("With --producer you must specify a --topic")
    if args.has("idempotent") and not args.has("producer"):
        raise UsageError("The --idempotent option is only available if --producer is set")
    if args.has("consumer") and (
        not (args.has("topic") and args.has("group"))
        or (not args.has("producer") and args.has("cluster", "transactional-id"))
    ):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or "
            "--transactional-id option should be specified."
        )
    if args.has("principal") and not args.has("list"):
        raise UsageError("The --principal option is only available if --list is set")
    if args.has("add") and not args.has("allow-principal", "deny-principal"):
        raise UsageError(
            "You must specify one of: --allow-principal, --deny-principal when trying to add ACLs."
        )


async def _list(args: Arguments, client: "Client") -> None:
    from penstock.kafka_tools.acl_rules import resources

    wanted = principals(args, "principal")
    found = await _found(client, resources(args))
    if not wanted:
        _print_current(found)
    for who in wanted:
        print(f"ACLs for principal `{who}`")
        theirs = {
            of: [each for each in granted if each.principal == who] for of, granted in found.items()
        }
        _print_current({of: granted for of, granted in theirs.items() if granted})


async def _found(client: "Client", wanted: "Sequence[AclResource]") -> "Rules":
    from penstock.client.acls import AclBindingFilter, list_acls
    from penstock.kafka_tools.acl_rules import by_resource, filter_of

    filters = [filter_of(each) for each in wanted] or [AclBindingFilter()]
    return by_resource(
        dict.fromkeys([found for each in filters for found in await list_acls(client, each)])
    )


def _print_current(found: "Rules") -> None:
    for of, granted in found.items():
        print(f"Current ACLs for resource `{of}`:\n\t{_lines(granted)}\n")


def _lines(granted: "Iterable[AclRule]") -> str:
    return "\n\t".join(map(str, granted))


async def _add(args: Arguments, client: "Client") -> None:
    from penstock.client.acls import create_acl
    from penstock.kafka_tools.acl_rules import binding_of, pattern_type, rules
    from penstock.security.acl import PatternType

    pattern = pattern_type(args)
    if pattern not in {PatternType.LITERAL, PatternType.PREFIXED}:
        raise UsageError(
            f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls."
        )
    for of, granted in rules(args).items():
        there = set((await _found(client, [of])).get(of, ()))
        for each in granted:
            if each in there:
                print(f"Acl (pattern={of}, entry={each}) already exists.")
        new = [each for each in granted if each not in there]
        if new:
            print(f"Adding ACLs for resource `{of}`: \n \t{_lines(new)}\n")
        for each in new:
            await create_acl(client, binding_of(of, each))


async def _remove(args: Arguments, client: "Client") -> None:
    from penstock.client.acls import delete_acls
    from penstock.kafka_tools.acl_rules import filter_of, rules

    for of, granted in rules(args).items():
        question = (
            f"remove ACLs: \n \t{_lines(granted)} \n from resource filter `{of}`?"
            if granted
            else f"delete all ACLs for resource filter `{of}`?"
        )
        if not _confirmed(args, f"Are you sure you want to {question} (y/n)"):
            continue
        filters = [filter_of(of, each) for each in granted] or [filter_of(of)]
        for wanted in filters:
            await delete_acls(client, wanted)


def _confirmed(args: Arguments, question: str) -> bool:
    if args.has("force"):
        return True
    print(question, flush=True)
    return sys.stdin.buffer.readline().strip().lower() == b"y"


def failed(error: Exception, _words: Sequence[str]) -> str:
    from penstock.client.errors import BrokerRefused
    from penstock.kafka_tools.messages import exception_name, refusal_text

    reason = refusal_text(error)
    if isinstance(error, BrokerRefused):
        reason = f"{exception_name(error)}: {reason}"
    return f"Error while executing ACL command: {reason}"


TOOL = Tool(
    Table("kafka-acls", "This tool helps to manage acls on kafka.", OPTIONS),
    acls,
    failed,
    failed_on_stdout=True,
)
