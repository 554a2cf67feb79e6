"""Hypothesis strategies for wire messages, derived from their declarations."""

import re
from typing import Any

from hypothesis import strategies as st

from penstock.errors import ErrorCode
from penstock.wire.apis import APIS, DATA_MESSAGES, message_type
from penstock.wire.schema import Array, Kind, Message, fields

BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
# Lengths around the point where a compact length grows by a byte.
LONG_TEXT = st.sampled_from([126, 127, 128, 300]).map(lambda n: "é" + "x" * (n - 2))

ALL_VERSIONS = [
    (kind, range(api.low, api.high + 1))
    for api in APIS.values()
    for kind in (api.request, api.response)
] + [(message_type(name), range(data.low, data.high + 1)) for name, data in DATA_MESSAGES.items()]


def messages(message: type[Message], version: int) -> st.SearchStrategy[Any]:
    """Any message with any values in the fields that `version` carries."""
    return st.builds(
        message,
        **{
            f.name: values(f.name, f.kind, nullable=f.nullable, version=version)
            for f in fields(message, version)
        },
    )


def values(name: str, kind: Kind, *, nullable: bool, version: int) -> st.SearchStrategy[Any]:
    found = _values(name, kind, version)
    return st.none() | found if nullable else found


def _values(name: str, kind: Kind, version: int) -> st.SearchStrategy[Any]:
    if isinstance(kind, Array):
        return st.lists(_values(name, kind.item, version), max_size=3)
    if not isinstance(kind, str):
        return messages(kind, version)
    if kind in BITS:
        if name.endswith("error_code"):
            return st.sampled_from([code.value for code in ErrorCode if code < 100])
        if re.search("(timestamp|time|period)(_ms)?$", name) and kind == "int64":
            return st.integers(0, 1 << 40)  # kio reads these as timestamps
        bound = 1 << (BITS[kind] - 1)
        return st.integers(-bound, bound - 1)
    return {
        "bool": st.booleans(),
        "uint16": st.integers(0, 65535),
        "float64": st.floats(allow_nan=False, allow_infinity=False),
        "string": TEXT | LONG_TEXT,
        "bytes": st.binary(max_size=20),
        "records": st.binary(max_size=200),
        "uuid": st.binary(min_size=16, max_size=16),
    }[kind]
