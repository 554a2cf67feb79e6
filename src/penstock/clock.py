"""The only reader of time. Logic takes time as an argument; shells ask a `Clock`."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time for timestamps, monotonic time for deadlines; both in milliseconds."""

    def now_ms(self) -> int: ...

    def monotonic_ms(self) -> int: ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000
