"""Writes `wire/hot.py`: the codecs of the requests that a broker serves most, for mypyc to compile.

They are the functions that `wire.codec` would make at first use, for the versions that clients of
today speak. `python -m codegen.hot` writes the file; it needs no jar.
"""

from codegen.__main__ import WIRE
from penstock.wire.apis import APIS, Api
from penstock.wire.decoder import DecoderSource
from penstock.wire.encoder import EncoderSource
from penstock.wire.schema import Message
from penstock.wire.source import FunctionSource

HOT = {0: 9, 1: 12, 3: 12}
"""Produce, Fetch and Metadata, each with the first of its versions."""

HEAD = '''"""Codecs of the requests that a broker serves most: requests in, responses out.

Written by `python -m codegen.hot`. Here mypyc can compile them; `codec` makes all others at their
first use.
"""

from collections.abc import Sequence
from typing import Any, Final

from penstock.types import Buffer
from penstock.wire.decoder import line_fields
from penstock.wire.encoder import UnencodableError
'''
PRIMITIVES = (
    "MALFORMED",
    "MalformedError",
    "check_tags",
    "malformed",
    "packer",
    "repeated",
    "skip_tags",
    "unpacker",
    "uvarint",
    "uvarint_bytes",
    "uvarint_rest",
)


def functions() -> list[tuple[Api, int]]:
    return [
        (APIS[key], version)
        for key, first in HOT.items()
        for version in range(first, APIS[key].high + 1)
    ]


def text() -> str:
    """The whole file. Its functions know the lines at which they stand, for their errors."""
    first_line = 0
    while True:  # the length of the head depends on what the functions need
        sources = written(first_line)
        head = constants(sources)
        if head.count("\n") == first_line:
            break
        first_line = head.count("\n")
    body = [line for source in sources for line in (*source.lines, "", "")]
    return head + "\n".join([*body, *tables(), ""])


def written(line: int) -> list[FunctionSource]:
    """The functions, of which the first stands behind `line`; all share their constants."""
    names = FunctionSource(0, flexible=True).names
    expressions: dict[str, str] = {}
    sources: list[FunctionSource] = []
    for api, version in functions():
        decoder = DecoderSource(version, flexible=True)
        encoder = EncoderSource(version, flexible=True)
        for source in (decoder, encoder):
            source.names, source.expressions = names, expressions
        fields_of = f"line_fields({api.request.__name__}, {version}, {line})"
        decoder.write(api.request, named("decode", api.request, version), fields_of)
        encoder.write(api.response, named("encode", api.response, version))
        line += len(decoder.lines) + len(encoder.lines) + 4
        sources += [decoder, encoder]
    return sources


def constants(sources: list[FunctionSource]) -> str:
    names = sources[0].names
    modules: dict[str, set[str]] = {"penstock.wire.primitives": set(PRIMITIVES)}
    found = {each.__name__: each for api, _ in functions() for each in (api.request, api.response)}
    for name, message in (found | names).items():
        if isinstance(message, type) and issubclass(message, Message):
            own = message.__name__
            spelled = own if name == own else f"{own} as {name}"
            modules.setdefault(message.__module__, set()).add(spelled)
    lines = [
        f"from {module} import {', '.join(sorted(of))}" for module, of in sorted(modules.items())
    ]
    lines += ["", *(f"{name}: Final = {made}" for name, made in sources[0].expressions.items())]
    return "\n".join([HEAD.rstrip(), *lines, "", "", ""])


def tables() -> list[str]:
    lines = []
    for table, kind, of in (("DECODERS", "decode", "request"), ("ENCODERS", "encode", "response")):
        lines.append(f"{table}: Final[dict[tuple[Any, int], Any]] = {{")
        for api, version in functions():
            message = getattr(api, of)
            lines.append(f"    ({message.__name__}, {version}): {named(kind, message, version)},")
        lines.append("}")
    return lines


def named(kind: str, message: type[Message], version: int) -> str:
    return f"{kind}_{message.__name__}_{version}"


if __name__ == "__main__":
    (WIRE / "hot.py").write_text(text())
