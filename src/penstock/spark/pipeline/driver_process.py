"""The process of the driver's JVM. If it ends, for example for lack of memory, so does the run.

Without this, Spark's client would try to reach it for ten minutes: its server might be on another
machine.
"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from subprocess import Popen
from typing import Any

from penstock.spark.pipeline.failure import PipelineFailed


class DriverProcess:
    """A JVM that this process has started."""

    def __init__(self, process: Popen[bytes]) -> None:
        self._process = process

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def while_alive(self, call: Callable[[], object]) -> None:
        """Call it, unless the JVM has ended."""
        if self.is_alive:
            call()

    def retry_while_alive(self, session: Any) -> None:
        """Let the session's client retry only while the JVM runs."""
        for policy in session.client.get_retry_policies():
            policy.can_retry = self._while_alive(policy.can_retry)

    def _while_alive(
        self, can_retry: Callable[[BaseException], bool]
    ) -> Callable[[BaseException], bool]:
        return lambda error: self.is_alive and can_retry(error)

    @contextmanager
    def told_if_lost(self) -> Iterator[None]:
        """If the block fails and the JVM has ended, report that, whatever the error says."""
        try:
            yield
        except Exception as error:
            code = self._process.poll()
            if code is None:
                raise
            how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
            raise PipelineFailed(
                f"Spark's JVM was ended {how}; the next run goes on where this one was (if memory "
                "was short, see --conf spark.driver.memory)"
            ) from error
