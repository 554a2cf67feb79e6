"""`--routes FILE`: delay routes for brokers without the topic settings, such as Apache Kafka."""

from pathlib import Path

import click

from penstock.client.cluster import Client
from penstock.config.delay_route import Route
from penstock.config.route_file import parse_routes
from penstock.errors import ConfigError
from penstock.retry.routes import existing_routes, find_routes

ROUTES = click.option(
    "--routes",
    "route_file",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A file of delay and retry topics, for Apache Kafka, which has no such topic settings: "
    "a section [TOPIC] with the same settings.",
)


def read_routes(file: Path) -> dict[str, Route]:
    try:
        return parse_routes(file.read_text(encoding="utf-8"), str(file))
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: is not UTF-8 text") from None


async def known_routes(client: Client, file: Path | None) -> dict[str, Route]:
    """The routes from the file, or else from topic settings."""
    if file is None:
        return await find_routes(client)
    return await existing_routes(client, read_routes(file))


async def route_to(client: Client, topic: str, file: Path | None) -> Route:
    routes = await known_routes(client, file)
    if topic not in routes:
        known = ", ".join(sorted(routes)) or "none"
        raise ConfigError(f"{topic} is not a delay or retry topic; there are: {known}")
    return routes[topic]
