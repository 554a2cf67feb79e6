"""`kafka-client-metrics.sh`: configures which metrics clients push (KIP-714)."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from penstock.kafka_tools.connection import run
from penstock.kafka_tools.options import BOOTSTRAP, COMMAND_CONFIG, Option, Table, flag, text
from penstock.kafka_tools.parser import Arguments, UsageError
from penstock.kafka_tools.tool import Tool

if TYPE_CHECKING:
    from penstock.client.cluster import Client
    from penstock.client.configs import Resource

ACTIONS = ("alter", "delete", "describe", "list")
SETTINGS = {"interval": "interval.ms", "match": "match", "metrics": "metrics"}
"""Settings by option; an empty text removes a setting."""
OPTIONS: Sequence[Option] = (
    BOOTSTRAP,
    COMMAND_CONFIG,
    flag("alter", "Alter the settings of a resource."),
    flag("delete", "Delete a resource."),
    flag("describe", "Describe one resource, or all."),
    flag("list", "List the resources."),
    text("name", "NAME", "The name of the resource."),
    flag("generate-name", "With --alter: make up a name."),
    text("interval", "MS", "How often clients push; empty resets it."),
    text("match", "K1=V1,K2=V2", "Which clients are meant, by regular expressions; empty: all."),
    text("metrics", "M1,M2", "Prefixes of names of metrics; * means all, empty none."),
)


def metrics(args: Arguments) -> int:
    args.require("bootstrap-server")
    actions = args.given(ACTIONS)
    if len(actions) != 1:
        raise UsageError(
            "Command must include exactly one action: --alter, --delete, --describe or --list."
        )
    match actions[0]:
        case "alter":
            _check_alter(args)
            work = _alter
        case "delete":
            if not args.has("name"):
                raise UsageError("A client metrics resource name must be specified with --delete.")
            args.forbid("delete", ("generate-name", *SETTINGS))
            work = _delete
        case "describe":
            args.forbid("describe", ("generate-name", *SETTINGS))
            work = _describe
        case _:
            args.forbid("list", ("name", "generate-name", *SETTINGS))
            work = _list
    run(args, partial(work, args))
    return 0


def _check_alter(args: Arguments) -> None:
    if args.has("name") == args.has("generate-name"):
        raise UsageError("One of --name or --generate-name must be specified with --alter.")
    interval = args.find("interval")
    if interval and not interval.lstrip("-").isdigit():
        raise UsageError("Invalid interval value. Enter an integer, or leave empty to reset.")


async def _alter(args: Arguments, client: "Client") -> None:
    from penstock.client.configs import alter_configs
    from penstock.kafka_tools.storage import random_id

    name = args.find("name") or random_id()
    changes = {
        setting: args.text(option) or None
        for option, setting in SETTINGS.items()
        if args.has(option)
    }
    await alter_configs(client, _resource(name), changes)
    print(f"Altered client metrics config for {name}.")


async def _delete(args: Arguments, client: "Client") -> None:
    from penstock.client.configs import ConfigSource, alter_configs, describe_configs

    name = args.text("name")
    found = await describe_configs(client, _resource(name))
    own = [
        each.name
        for each in found.values()
        if each.source is ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG
    ]
    await alter_configs(client, _resource(name), dict.fromkeys(own))
    print(f"Deleted client metrics config for {name}.")


async def _describe(args: Arguments, client: "Client") -> None:
    from penstock.client.configs import describe_configs

    wanted, known = args.find("name"), await _known(client)
    if wanted is not None and wanted not in known:
        print(f"The client metric resource {wanted} doesn't exist and doesn't have dynamic config.")
        return
    for name in known if wanted is None else [wanted]:
        print(f"Client metrics configs for {name} are:")
        found = await describe_configs(client, _resource(name))
        for _, each in sorted(found.items()):
            print(f"  {each.name}={each.value or ''}")


async def _list(args: Arguments, client: "Client") -> None:
    del args
    for name in await _known(client):
        print(name)


async def _known(client: "Client") -> list[str]:
    from penstock.client.config_resources import list_config_resources
    from penstock.config.resource_type import ConfigResourceType

    return await list_config_resources(client, ConfigResourceType.CLIENT_METRICS)


def _resource(name: str) -> "Resource":
    from penstock.client.configs import Resource
    from penstock.config.resource_type import ConfigResourceType

    return Resource(ConfigResourceType.CLIENT_METRICS, name)


def failed(error: Exception, _words: Sequence[str]) -> str:
    from penstock.kafka_tools.messages import refusal_text

    return f"Error while executing client metrics command : {refusal_text(error)}"


TOOL = Tool(
    Table(
        "kafka-client-metrics",
        "This tool helps to manipulate and describe client metrics configurations.",
        OPTIONS,
    ),
    metrics,
    failed,
    failed_on_stdout=True,
)
