"""One client connection over TLS: the same session, on a socket that encrypts.

Two things differ from a plain socket. OpenSSL may hold decrypted bytes that were not read yet, and
the socket does not become readable for them. And OpenSSL writes at most 16 KB at a time, from
memory: log files are read before they are sent, in pieces large enough to make the calls cheap.
"""

import asyncio
import logging
import os
import ssl
from contextlib import suppress
from typing import Final, Protocol

from penstock.broker.net.dispatch import Dispatch
from penstock.broker.net.rate_limited_log import RateLimitedLog
from penstock.broker.net.session import Owner, Session
from penstock.broker.net.tls import TlsListener
from penstock.errors import ProtocolError
from penstock.log.lookup import LogSlice
from penstock.wire.frame import FrameHeldBack

logger = logging.getLogger(__name__)
_client_log = RateLimitedLog()

SEND_BYTES: Final = 1 << 18
"""Bytes read from log files and sent in one piece."""
RECORDS_A_TURN: Final = 64
"""TLS records received from one connection before other connections get a turn: 1 MiB."""
HANDSHAKE_RETRY_S: Final = 0.01


class TlsOwner(Owner, Protocol):
    """What a TLS session needs of its server in addition."""

    def secured(self, session: Session) -> None: ...


class TlsSession(Session):
    """A connection over TLS. No request is read before the handshake is complete."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        sock: ssl.SSLSocket,
        dispatch: Dispatch,
        owner: TlsOwner,
        max_frame_bytes: int,
        tls: TlsListener,
        failure_delay_ms: int,
    ) -> None:
        self._tls, self._tls_socket, self._failure_delay_ms = tls, sock, failure_delay_ms
        self._is_open, self._on_secured = False, owner.secured
        super().__init__(loop, sock, dispatch, owner, max_frame_bytes)

    def resume_reading(self) -> None:
        super().resume_reading()
        if self._reading and self._is_open and self._tls_socket.pending():
            self._loop.call_soon(self.on_readable)

    def on_readable(self) -> None:
        if not self._reading:
            return  # scheduled earlier; reading was paused or closed meanwhile
        if not self._is_open:
            self._shake_hands()
            return
        self.active_at = self._loop.time()
        for _ in range(RECORDS_A_TURN):
            if not self._receive() or not self._reading:
                return
        self._loop.call_soon(self.on_readable)

    def _receive(self) -> bool:
        """Receive at most one TLS record; returns whether there may be more."""
        try:
            count = self._tls_socket.recv_into(self._buffer.space())
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except FrameHeldBack:
            self.pause_reading()
            return False
        except (OSError, ProtocolError) as error:
            self.close(str(error))
            return False
        if count == 0:
            self.end()
            return False
        self._buffer.received(count)
        may_go_on = (self._request is None or self._waiter is not None) and not self._writing
        if may_go_on and self._has_frame():  # not for each of the 64 records in 1 MiB
            self.pump()
        if self.is_busy:
            self._pause_if_ahead()
        return True

    def _has_frame(self) -> bool:
        try:
            return self._buffer.has_frame
        except ProtocolError:
            return True  # `pump` raises it again, logs it and closes the connection

    def _shake_hands(self) -> None:
        try:
            self._tls_socket.do_handshake()
            certificate = self._tls_socket.getpeercert(binary_form=True)
            principal = self._tls.principal(certificate)
        except ssl.SSLWantReadError:
            return
        except ssl.SSLWantWriteError:
            self._loop.call_later(HANDSHAKE_RETRY_S, self.on_readable)
            return
        except (OSError, ProtocolError) as error:
            self._refuse_client(error)
            return
        self._is_open = True
        self._dispatch.peer.principal = principal
        self._on_secured(self)
        if self._tls_socket.pending():
            self.on_readable()

    def _refuse_client(self, error: Exception) -> None:
        """Close after a delay: most refused clients retry at once."""
        reason = str(getattr(error, "reason", None) or error).lower().replace("_", " ")
        _client_log.warn(
            self._loop.time(), "failed TLS handshake with %s: %s", self._dispatch.peer, reason
        )
        self.pause_reading()
        self._loop.call_later(self._failure_delay_ms / 1000, self.close, reason)

    def _send_some(self) -> bool:
        """Send the first piece of the output, or the start of it; False when the socket is full."""
        piece = self._gathered()
        try:
            sent = self._tls_socket.send(piece)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            return False  # the next call must pass the same bytes: they are still the first piece
        if sent < len(piece):
            self._out[0] = piece[sent:]
        else:
            self._out.popleft()
        return True

    def _gathered(self) -> memoryview:
        """The first piece of the output, in memory; small pieces and file slices are joined."""
        out = self._out
        first = out[0]
        if isinstance(first, memoryview) and (len(out) == 1 or len(first) >= SEND_BYTES):
            return first
        pieces: list[memoryview | bytes] = []
        size = 0
        while out and size < SEND_BYTES:
            piece = out.popleft()
            if isinstance(piece, LogSlice):
                data = read_slice(piece, SEND_BYTES - size)
                if len(data) < piece.size_bytes:
                    rest = piece.size_bytes - len(data)
                    out.appendleft(LogSlice(piece.file, piece.position + len(data), rest))
                pieces.append(data)
                size += len(data)
            else:
                pieces.append(piece)
                size += len(piece)
        joined = memoryview(b"".join(pieces))
        out.appendleft(joined)
        return joined

    def close(self, reason: str) -> None:
        if self._fd >= 0 and self._is_open:
            # Tells the client that the stream is complete, without waiting for its answer.
            with suppress(OSError, ValueError):
                self._tls_socket.unwrap()
        super().close(reason)


def read_slice(piece: LogSlice, limit: int) -> bytes:
    """The first bytes of a slice of a log file."""
    data = os.pread(piece.file.fileno(), min(piece.size_bytes, limit), piece.position)
    if not data:
        raise OSError(f"{piece.file} is shorter than it was")
    return data
