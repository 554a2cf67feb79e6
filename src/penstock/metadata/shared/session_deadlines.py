"""Decides when sessions expire. Pure: the time is an argument."""


class SessionDeadlines:
    """A session that sent nothing for its timeout has expired.

    `passed` is called at regular intervals. If the owner itself could not run for a while, such as
    during a slow sync, messages are waiting that would have kept sessions alive. So that time does
    not count.
    """

    def __init__(self, interval_ms: int, now_ms: int) -> None:
        self._interval_ms, self._last_ms = interval_ms, now_ms
        self._timeouts: dict[int, int] = {}
        self._deadlines: dict[int, int] = {}

    def add(self, session: int, timeout_ms: int, now_ms: int) -> None:
        self._timeouts[session] = timeout_ms
        self.renew(session, now_ms)

    def remove(self, session: int) -> None:
        self._timeouts.pop(session, None)
        self._deadlines.pop(session, None)

    def renew(self, session: int, now_ms: int) -> None:
        if session in self._timeouts:
            self._deadlines[session] = now_ms + self._timeouts[session]

    def __contains__(self, session: int) -> bool:
        return session in self._timeouts

    def passed(self, now_ms: int) -> list[int]:
        """The sessions that have expired."""
        late_ms = max(now_ms - self._last_ms - 2 * self._interval_ms, 0)
        self._last_ms = now_ms
        if late_ms:
            for session in self._deadlines:
                self._deadlines[session] += late_ms
        return [session for session, at_ms in self._deadlines.items() if at_ms <= now_ms]
