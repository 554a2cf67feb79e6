"""JSON that is checked against a JSON Schema, when written and when read."""

from collections.abc import Mapping

import jsonschema
import msgspec


class JsonSchema:
    """Any draft that `jsonschema` knows; `$schema` says which, else the newest."""

    def __init__(self, schema: Mapping[str, object]) -> None:
        kind = jsonschema.validators.validator_for(schema)
        kind.check_schema(schema)
        self._validator = kind(schema)

    def serialize(self, value: object, /) -> bytes:
        self._check(value)
        return msgspec.json.encode(value)

    def deserialize(self, data: bytes, /) -> object:
        value = msgspec.json.decode(data)
        self._check(value)
        return value

    def _check(self, value: object) -> None:
        for error in self._validator.iter_errors(value):
            path = "/".join(map(str, error.absolute_path)) or "the value"
            raise ValueError(f"{path}: {error.message}")
