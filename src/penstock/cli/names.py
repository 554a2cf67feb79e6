"""Argument types for names of topics and groups, with shell completion."""

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem  # only shells need it

WAIT_S = 1.5
"""The timeout of a completion, so that the shell does not hang."""


class TopicName(click.ParamType[str]):
    """A topic name; completed from the cluster."""

    name = "topic"

    def convert(self, value: Any, param: Any, ctx: Any) -> str:  # noqa: ARG002
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        del param
        return _items(ctx, "topics", incomplete)


class GroupName(TopicName):
    """A group name; completed from the cluster."""

    name = "group"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> "list[CompletionItem]":
        del param
        return _items(ctx, "groups", incomplete)


TOPIC_NAME, GROUP_NAME = TopicName(), GroupName()


def _items(ctx: click.Context, kind: str, incomplete: str) -> "list[CompletionItem]":
    from click.shell_completion import CompletionItem

    return [CompletionItem(each) for each in _names(ctx, kind) if each.startswith(incomplete)]


def _names(ctx: click.Context, kind: str) -> list[str]:
    """The names in the cluster; none if it does not answer: a completion shows no errors."""
    from penstock.cli.remote import NAMES, remote_of  # late: only shells need it
    from penstock.client.admin import list_topics
    from penstock.client.groups import list_groups

    given = {name: ctx.params.get(name) for name in NAMES}
    given |= {"seconds": WAIT_S, "properties": given["properties"] or ()}
    try:
        remote = remote_of(given)
        if kind == "groups":
            return [each.id for each in remote.run(list_groups)]
        return [each.name for each in remote.run(list_topics)]
    except Exception:  # noqa: BLE001  a completion must not print a traceback
        return []
