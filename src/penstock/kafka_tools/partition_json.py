"""Reads the JSON files that name partitions, for several tools."""

from pathlib import Path
from typing import Any

import msgspec

from penstock.kafka_tools.tool import ToolError


def read_json(path: str, option: str) -> dict[str, Any]:
    """The object in a file; errors name the option."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ToolError(f"--{option} {path}: {error.strerror}") from None
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ToolError(f"--{option} {path} is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise ToolError(f"--{option} {path}: must be an object")
    return found


def listed(document: dict[str, Any], key: str, about: str) -> list[dict[str, Any]]:
    """The list of objects under `key`."""
    found = document.get(key)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ToolError(f"{about}: {key} must be a list of objects")
    return found


def field(row: dict[str, Any], name: str, kind: type, about: str) -> Any:
    found = row.get(name)
    if not isinstance(found, kind) or isinstance(found, bool):
        what = {str: "a text", int: "a number", list: "a list"}[kind]
        raise ToolError(f"{about}: {name} must be {what} in {msgspec.json.encode(row).decode()}")
    return found
