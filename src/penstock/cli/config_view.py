"""Settings as commands show them: name, value, source, meaning."""

from collections.abc import Iterable
from typing import Any

from penstock.cli.output import Column
from penstock.client.configs import ConfigEntry, ConfigSource

ENTRIES = (
    Column("NAME", "name"),
    Column("VALUE", "value"),
    Column("SOURCE", "source"),
    Column("READ ONLY", "read_only", is_wide=True),
    Column("MEANING", "documentation", is_wide=True),
)


def entries(found: Iterable[ConfigEntry], *, is_all: bool) -> list[dict[str, Any]]:
    """Rows sorted by name; without `is_all`, only settings that differ from the default."""
    return [
        entry(each)
        for each in sorted(found, key=lambda each: each.name)
        if is_all or each.source is not ConfigSource.DEFAULT_CONFIG
    ]


def entry(each: ConfigEntry) -> dict[str, Any]:
    return {
        "name": each.name,
        "value": "[hidden]" if each.is_sensitive else each.value,
        "source": each.source.name,
        "read_only": each.is_read_only,
        "documentation": each.documentation,
    }
