"""Certificates and keys that change while the broker runs: in files, or by altered settings."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from penstock.broker.net.protection import Protection
from penstock.clock import Clock
from penstock.errors import ConfigError, ProtocolError

logger = logging.getLogger(__name__)

CHECK_S = 1.0


class Certificates:
    """The certificates of all TLS listeners. `altered` returns this broker's altered settings by
    name.
    """

    def __init__(
        self,
        listeners: Iterable[Protection],
        altered: Callable[[], Mapping[str, str]],
        clock: Clock,
    ) -> None:
        self._listeners = [each.tls for each in listeners if each.tls is not None]
        self._altered, self._clock = altered, clock

    async def follow(self) -> None:
        """Load changed certificates until cancelled. A listener keeps its old one if the new one is
        bad.
        """
        while True:
            await asyncio.sleep(CHECK_S)
            await self.refresh()

    async def refresh(self) -> None:
        for tls in self._listeners:
            try:
                tls.alter(self._altered())
                stamp = tls.current_stamp()
                if stamp == tls.stamp:
                    continue
                tls.stamp = stamp
                tls.replace(await asyncio.to_thread(tls.load, self._clock.now_ms()))
            except (ConfigError, ProtocolError) as error:
                logger.warning("listener %s keeps its certificate: %s", tls.listener, error)
            else:
                logger.info("listener %s uses the changed certificate", tls.listener)

    async def check(self, altered: Mapping[str, str]) -> None:
        """Raises `ConfigError` if a listener could not use these altered settings (KIP-226)."""
        for tls in self._listeners:
            try:
                new = await asyncio.to_thread(tls.altered, altered, self._clock.now_ms())
            except ProtocolError as error:  # a certificate that does not parse
                raise ConfigError(str(error)) from None
            tls.check_same_broker(new.own)
