"""The served APIs: how each version is decoded, handled and encoded, and counts for the metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from penstock.broker.context import AnyHandler
from penstock.broker.net.large_requests import LargeSlots
from penstock.errors import ProtocolError
from penstock.types import Buffer
from penstock.wire.apis import Api
from penstock.wire.codec import decoder, encoder
from penstock.wire.frame import RequestHeader
from penstock.wire.schema import Message, Splice, fields

PRODUCE: Final = 0
VIEWS_FRAME: Final = {PRODUCE}
"""Produce: its records are views of the frame. Other requests are small and decode faster from
bytes.
"""


@dataclass
class Route:
    """One API at one version, with its counts and times for the metrics."""

    api: Api
    version: int
    handle: AnyHandler
    decode: Callable[[Buffer, int], tuple[Message, int]]
    encode: Callable[[Message, bytearray], Sequence[Splice]]
    views_frame: bool
    tells_errors: bool
    """The response has an error code of its own at this version."""
    requests: int = 0
    errors: int = 0
    total_ns: int = 0
    """From the last byte of each request to its encoded response, including waits."""
    times: list[int] = field(default_factory=lambda: [0] * 64)
    """`times[n]` counts requests that took from 2**(n-1) to less than 2**n nanoseconds."""


class Routes:
    """The served APIs; a route for each API and version is made at first use."""

    def __init__(self, handlers: Mapping[int, AnyHandler]) -> None:
        self.handlers = handlers
        self.slots = LargeSlots()
        self.by_version: dict[tuple[int, int], Route] = {}

    def find(self, header: RequestHeader) -> Route:
        """The route of a request; `by_version` has it after the first one."""
        key = (header.api.key, header.version)
        route = self.by_version.get(key)
        if route is None:
            route = self.by_version[key] = self._make(header.api, header.version)
        return route

    def _make(self, api: Api, version: int) -> Route:
        handler = self.handlers.get(api.key)
        if handler is None or not api.low <= version <= api.high:
            raise ProtocolError(f"{api.name} v{version} is not served")
        return Route(
            api,
            version,
            handler,
            decoder(api.request, version),
            encoder(api.response, version),
            api.key in VIEWS_FRAME,
            any(each.name == "error_code" for each in fields(api.response, version)),
        )
