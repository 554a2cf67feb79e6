"""Checks a large batch on another thread: a few kilobytes may hold hundreds of megabytes."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeAlias

from penstock.broker.context import Resources
from penstock.log.lookup import DECOMPRESSED_LIMIT_BYTES
from penstock.record.batch import BatchHeader
from penstock.record.compression import DecompressionLimit

Batch: TypeAlias = bytearray | memoryview
Check: TypeAlias = Callable[..., tuple[Batch, BatchHeader, int]]
"""`record.validate.stored`, but for `limit_bytes`: the most that it decompresses."""

CHECKER_BYTES: Final = 1 << 20
"""The largest decompressed batch for `Resources.checker`; larger ones wait for the worker."""


class OffLoopCheck:
    """The check of a batch that is too large to be checked on the loop."""

    def __init__(self, resources: Resources, *, is_huge: bool) -> None:
        self._resources = resources
        self._is_huge = is_huge
        """Whether it is too large for `Resources.checker`."""
        self.future: Future[tuple[Batch, BatchHeader, int]] | None = None

    def begin(self, check: Check) -> None:
        if self._is_huge:
            worker, limit_bytes = self._resources.worker, DECOMPRESSED_LIMIT_BYTES
        else:
            worker, limit_bytes = self._resources.checker, CHECKER_BYTES
        self.future = worker.submit(check, limit_bytes=limit_bytes)

    def result(self) -> tuple[Batch, BatchHeader] | None:
        """The checked batch; None if the check has yet to begin, or to begin again."""
        if self.future is None:
            return None
        try:
            batch, header, _ = self.future.result()
        except DecompressionLimit:
            if self._is_huge:
                raise
            self._is_huge = True
            return None
        return batch, header
