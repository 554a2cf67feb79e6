"""Selects the topics of a command, and runs work for each of them."""

import re
from collections.abc import Awaitable, Callable, Sequence

import click

from penstock.cli.failure import ExitCode, SomeFailed, exit_code
from penstock.cli.frame.nearest import with_nearest
from penstock.cli.frame.terminal import confirm
from penstock.cli.names import TOPIC_NAME
from penstock.cli.remote import Remote
from penstock.client.admin import list_topics
from penstock.client.cluster import Client
from penstock.client.errors import BrokerRefused
from penstock.errors import ConfigError, KafkaError

NAMES = click.argument("names", metavar="TOPIC...", nargs=-1, required=True, type=TOPIC_NAME)
REGEX = click.option(
    "--regex",
    is_flag=True,
    help="Each TOPIC is a regular expression for whole names; internal topics only if it begins "
    "with two underscores.",
)
VALIDATE_ONLY = click.option(
    "--validate-only", is_flag=True, help="Let the broker check it, and change nothing."
)


def matching(patterns: Sequence[str], names: Sequence[str]) -> list[str]:
    """The names that match one of the regular expressions, in order."""
    try:
        compiled = [(each.startswith("__"), re.compile(each)) for each in patterns]
    except re.error as error:
        raise ConfigError(f"--regex: {error.pattern!r} is not an expression: {error}") from None
    return [
        name
        for name in names
        if any(
            each.fullmatch(name) and (internal or not name.startswith("__"))
            for internal, each in compiled
        )
    ]


def chosen(remote: Remote, names: Sequence[str], *, regex: bool) -> list[str]:
    if not regex:
        return list(dict.fromkeys(names))
    known = [each.name for each in remote.run(list_topics)]
    found = matching(names, known)
    if not found:
        raise ConfigError(f"no topic matches {' or '.join(names)}")
    return found


def confirm_for(names: Sequence[str], what: str) -> None:
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    confirm(f"{what} {shown}?")


def for_each(
    remote: Remote, names: Sequence[str], work: Callable[[Client, str], Awaitable[None]]
) -> None:
    """Do the work for every topic, even if it fails for some; then raise the errors."""

    async def all_of_them(client: Client) -> list[KafkaError]:
        errors: list[KafkaError] = []
        for name in names:
            try:
                await work(client, name)
            except KafkaError as error:
                if exit_code(error) is ExitCode.UNREACHABLE:
                    raise  # the other topics would fail too
                if isinstance(error, BrokerRefused):
                    error = await with_nearest(client, error)
                errors.append(error)
        return errors

    errors = remote.run(all_of_them)
    if errors:
        raise SomeFailed(errors, len(names))
