"""Kafka's own message classes as the oracle for ours: `java/Oracle.java` behind a pipe."""

import json
from types import TracebackType
from typing import Any, NamedTuple, Self

from peers.java import java_process


class RefusedError(Exception):
    """Kafka's classes refused the request; the text is the Java exception."""


class Api(NamedTuple):
    """One row of Kafka's `ApiKeys`; `max` is the latest stable version, below `min` if there is
    none.
    """

    key: int
    name: str
    min: int
    max: int
    max_unstable: int
    cluster_action: bool
    forwardable: bool
    listeners: list[str]
    request_headers: list[int]
    """The header version of each request version, from `min` to `max_unstable`."""
    response_headers: list[int]

    def is_flexible(self, version: int) -> bool:
        return self.request_headers[version - self.min] >= 2

    @property
    def first_flexible(self) -> int | None:
        versions = range(self.min, self.max_unstable + 1)
        return next((version for version in versions if self.is_flexible(version)), None)


class Oracle:
    """Converts messages by their schema names (`FetchRequest`, `ConsumerProtocolSubscription`).

    A message outside the client's own package needs its full class name.
    """

    def __init__(self, jars: str = "clients-4.4.0") -> None:
        self._java = java_process("Oracle", jars=jars)

    def reencode(self, name: str, version: int, data: bytes) -> tuple[bytes, dict[str, Any]]:
        """Decodes `data`; returns the message as Kafka encodes it again, and as JSON.

        Kafka's JSON leaves out the bytes of record batches.
        """
        again, text = self._ask(f"{name} {version} {data.hex()}").split(" ", 1)
        return bytes.fromhex(again), json.loads(text)

    def encode_json(self, name: str, version: int, message: dict[str, Any]) -> bytes:
        """Encodes a message in the form of `reencode`'s JSON; every field must be there."""
        return bytes.fromhex(self._ask(f"JSON {name} {version} {json.dumps(message)}"))

    def errors(self) -> dict[str, int]:
        codes: dict[str, int] = json.loads(self._ask("ERRORS"))
        return codes

    def apis(self) -> list[Api]:
        return [Api(**row) for row in json.loads(self._ask("APIS"))]

    def _ask(self, line: str) -> str:
        answer = self._java.ask(line)
        if answer.startswith("ERR "):
            raise RefusedError(answer.removeprefix("ERR "))
        return answer

    def close(self) -> None:
        self._java.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
