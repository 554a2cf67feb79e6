"""The option for topic settings."""

from collections.abc import Sequence

import click

CONFIGS = click.option(
    "-c", "--config", "configs", multiple=True, metavar="NAME=VALUE", help="A setting of the topic."
)


def pairs(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--config")
        if name in found:
            raise click.BadParameter(f"{name} is given twice", param_hint="--config")
        found[name] = value
    return found
