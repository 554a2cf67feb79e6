"""Rate-limited log lines about clients: a bad client cannot fill the disk."""

import logging

from penstock.counted import counted

logger = logging.getLogger("penstock.broker.net.session")

LINES, PERIOD_S = 10, 60.0


class RateLimitedLog:
    """Logs a few lines a minute, and how many it has left out."""

    def __init__(self) -> None:
        self._since, self._count = float("-inf"), 0

    def warn(self, now_s: float, text: str, *values: object) -> None:
        if self._may_log(now_s):
            logger.warning(text, *values)

    def failed(self, now_s: float, error: Exception, text: str, *values: object) -> None:
        """Log a failure of ours, with its traceback: a client may repeat the request for ever."""
        if self._may_log(now_s):
            logger.error(text, *values, exc_info=error)

    def _may_log(self, now_s: float) -> bool:
        if now_s - self._since >= PERIOD_S:
            left_out = self._count - LINES
            if left_out > 0:
                logger.warning("left out %s about clients", counted(left_out, "more line"))
            self._since, self._count = now_s, 0
        self._count += 1
        return self._count <= LINES
