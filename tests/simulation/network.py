"""Links between hosts, slow or cut in one or both directions, and connections over them.

Data sent over a cut link is not lost but late, as with TCP: it arrives once the link is restored,
unless the connection was closed meanwhile.
"""

import asyncio
import errno
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable
from random import Random
from typing import Any, cast

from simulation.loop import PROCESS, Process, SimulatedLoop

LATENCY_S = (0.000_1, 0.002)


class Network:
    """Hosts by name. A machine is up while it has power; its processes start and die."""

    def __init__(self, loop: SimulatedLoop, chance: Random) -> None:
        self.loop, self.chance = loop, chance
        self.cut: set[tuple[str, str]] = set()
        """Links by source and destination."""
        self.slow_s: dict[tuple[str, str], float] = {}
        self.down: set[str] = set()
        """Machines without power: they do not answer, not even with a refusal."""
        self.listeners: dict[tuple[str, int], Socket] = {}
        self.ends: dict[End, None] = {}
        self._stuck: dict[Pipe, int] = {}
        self._held: set[Pipe] = set()
        self._descriptors = itertools.count(1000)
        self.readers: dict[int, tuple[Callable[..., object], tuple[Any, ...], Process]] = {}

    def delay_s(self, link: tuple[str, str]) -> float:
        return self.chance.uniform(*LATENCY_S) + self.slow_s.get(link, 0.0)

    def is_cut(self, link: tuple[str, str]) -> bool:
        return link in self.cut or link[0] in self.down or link[1] in self.down

    def hold(self, link: tuple[str, str]) -> None:
        """Delay what its present connections carry, not what new ones do: a segment was lost, and
        is sent again after a while, even if its sender has closed the connection by then.
        """
        self._held |= {end.out for end in self.ends if end.out.link == link}

    def is_held(self, pipe: "Pipe") -> bool:
        return pipe in self._held or self.is_cut(pipe.link)

    def release(self, link: tuple[str, str]) -> None:
        self._held -= {pipe for pipe in self._held if pipe.link == link}
        self.mend()

    def stuck(self, pipe: "Pipe") -> None:
        self._stuck[pipe] = self._stuck.get(pipe, 0) + 1

    def mend(self) -> None:
        """Deliver what waits on links that are no longer cut."""
        for pipe, count in list(self._stuck.items()):
            if not self.is_held(pipe):
                del self._stuck[pipe]
                for _ in range(count):
                    pipe.again()

    def process_died(self, process: Process, *, reported: bool) -> None:
        """Break its connections. The other ends learn of it, unless the machine died as well."""
        for key, listener in list(self.listeners.items()):
            if listener.process is process:
                del self.listeners[key]
        for end in [each for each in self.ends if each.process is process]:
            end.die(reported=reported)

    def machine_is_back(self, host: str) -> None:
        """The host forgets its former connections, and resets them when they are used."""
        self.down.discard(host)
        self.mend()

    def break_some(self, share: float) -> None:
        """Break some connections, with the data in flight."""
        for end in [each for each in self.ends if self.chance.random() < share]:
            end.fail()

    # The network functions that the loop offers to servers and clients.

    def bind(self, host: str, port: int) -> "Socket":
        if (host, port) in self.listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        return Socket(self, PROCESS.get(), (host, port))

    async def connect(self, host: str, port: int) -> "End":
        process, loop = PROCESS.get(), self.loop
        answered: asyncio.Future[End] = loop.create_future()
        there, back = Pipe(self, (process.host, host)), Pipe(self, (host, process.host))

        def arrive() -> None:
            listener = self.listeners.get((host, port))
            if listener is None:
                back.send(refuse)
                return
            ours, theirs = End(self, process, there), End(self, listener.process, back)
            ours.other, theirs.other = theirs, ours
            listener.accepted(theirs)
            back.send(lambda: accept(ours))

        def refuse() -> None:
            if not answered.done():
                error = ConnectionRefusedError(errno.ECONNREFUSED, "refused")
                loop.call_soon(_fail, answered, error, context=process.context)

        def accept(end: End) -> None:
            if answered.done() or not process.is_alive:
                end.reset()
            else:
                loop.call_soon(_set, answered, end, context=process.context)

        if not process.is_alive:
            raise OSError(errno.ENETDOWN, os.strerror(errno.ENETDOWN))
        there.send(arrive)
        return await answered

    def connect_here(self, host: str, port: int) -> "Socket":
        """Like a Unix socket: connects at once or not at all."""
        listener = self.listeners.get((host, port))
        if listener is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")
        process = PROCESS.get()
        ours = End(self, process, Pipe(self, (process.host, host)))
        theirs = End(self, listener.process, Pipe(self, (host, process.host)))
        ours.other, theirs.other = theirs, ours
        listener.accepted(theirs)
        return Socket(self, process, (process.host, 1), ours)

    def add_reader(self, fd: object, callback: Callable[..., object], *args: Any) -> None:
        number = fd if isinstance(fd, int) else cast("Socket", fd).fileno()
        self.readers[number] = callback, args, PROCESS.get()
        for each in (*self.listeners.values(), *(end.socket for end in self.ends if end.socket)):
            if each.fileno() == number:
                each.notify()

    def remove_reader(self, fd: object) -> bool:
        number = fd if isinstance(fd, int) else cast("Socket", fd).fileno()
        return self.readers.pop(number, None) is not None

    def descriptor(self) -> int:
        return next(self._descriptors)


def _set(future: asyncio.Future[Any], value: object) -> None:
    if not future.done():
        future.set_result(value)
    elif isinstance(value, End):
        value.reset()


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


class Pipe:
    """One direction of a connection: data arrives in order, or not at all."""

    def __init__(self, network: Network, link: tuple[str, str]) -> None:
        self._network, self.link = network, link
        self._queue: deque[Callable[[], None]] = deque()
        self._last_s = 0.0
        self.is_closed = False

    def send(self, arrive: Callable[[], None]) -> None:
        self._queue.append(arrive)
        self.again()

    def again(self) -> None:
        loop = self._network.loop
        self._last_s = max(self._last_s, loop.time() + self._network.delay_s(self.link))
        loop.call_at(self._last_s, self._arrive, context=loop.world.context)

    def _arrive(self) -> None:
        if self.is_closed:
            self._queue.clear()
        elif self._network.is_held(self):
            self._network.stuck(self)
        elif self._queue:
            self._queue.popleft()()


class End:
    """A process's end of a connection: the bytes received, or its end."""

    other: "End"

    def __init__(self, network: Network, process: Process, out: Pipe) -> None:
        self._network, self.process, self.out = network, process, out
        self.received = bytearray()
        self.is_over = False
        self.socket: Socket | None = None
        self.transport: Transport | None = None
        network.ends[self] = None

    def send(self, data: bytes) -> None:
        if not self.is_over and self.process.is_alive:
            self.out.send(lambda: self.other.take(data))

    def take(self, data: bytes) -> None:
        if self.is_over or not self.process.is_alive:
            self.out.send(self.other.hear_over)  # this connection no longer exists
            return
        self.received += data
        self._notify()

    def reset(self) -> None:
        """Close from here."""
        if not self.is_over:
            self.is_over = True
            self._network.ends.pop(self, None)
            if self.process.is_alive:
                self.out.send(self.other.hear_over)

    def die(self, *, reported: bool) -> None:
        self.is_over = True
        self._network.ends.pop(self, None)
        if reported:
            self.out.send(self.other.hear_over)

    def fail(self) -> None:
        """The connection breaks: data in flight is lost, and both ends learn of it."""
        for end in (self, self.other):
            end.out.is_closed = True
            end.hear_over()

    def hear_over(self) -> None:
        if not self.is_over:
            self.is_over = True
            self._network.ends.pop(self, None)
            self._notify()

    def _notify(self) -> None:
        if self.socket is not None:
            self.socket.notify()
        elif self.transport is not None:
            loop = self._network.loop
            loop.call_soon(self.transport.deliver, context=self.process.context)


class Socket:
    """The part of a socket that `broker.net` and `metadata.shared` use."""

    def __init__(
        self,
        network: Network,
        process: Process,
        address: tuple[str, int],
        end: End | None = None,
    ) -> None:
        self._network, self.process, self._address = network, process, address
        self._end, self._backlog = end, deque[End]()
        self._fd = network.descriptor()
        self._told = False
        if end is None:
            network.listeners[address] = self
        else:
            end.socket = self

    def settimeout(self, _: float) -> None: ...

    def setsockopt(self, *_: object) -> None: ...

    def fileno(self) -> int:
        return self._fd

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def accepted(self, end: End) -> None:
        self._backlog.append(end)
        self.notify()

    def accept(self) -> tuple["Socket", tuple[str, int]]:
        if not self._backlog:
            raise BlockingIOError
        end = self._backlog.popleft()
        client = end.other.process.host
        return Socket(self._network, self.process, (client, 1), end), (client, 1)

    @property
    def _is_readable(self) -> bool:
        end = self._end
        return bool(self._backlog) if end is None else bool(end.received) or end.is_over

    def notify(self) -> None:
        """Call the reader in the next turn, and again while there is data."""
        if not self._told and self._is_readable and self._fd in self._network.readers:
            self._told = True
            self._network.loop.call_soon(self._call, context=self.process.context)

    def _call(self) -> None:
        self._told = False
        found = self._network.readers.get(self._fd)
        if found is not None:
            callback, args, _ = found
            callback(*args)
            self.notify()

    def recv_into(self, space: memoryview) -> int:
        assert self._end is not None
        received = self._end.received
        if not received:
            if self._end.is_over:
                raise ConnectionResetError(errno.ECONNRESET, "the connection was reset")
            raise BlockingIOError
        count = min(len(space), len(received))
        space[:count] = received[:count]
        del received[:count]
        return count

    def recv(self, size: int) -> bytes:
        space = bytearray(size)
        return bytes(space[: self.recv_into(memoryview(space))])

    def send(self, data: memoryview) -> int:
        assert self._end is not None
        if self._end.is_over:
            raise BrokenPipeError(errno.EPIPE, "the connection was reset")
        self._end.send(bytes(data))
        return len(data)

    def sendmsg(self, views: Iterable[memoryview], *_: object) -> int:
        return self.send(memoryview(b"".join(views)))

    def close(self) -> None:
        self._network.readers.pop(self._fd, None)
        if self._end is not None:
            self._end.reset()
        elif self._network.listeners.get(self._address) is self:
            del self._network.listeners[self._address]


class Transport(asyncio.Transport):
    """A client's end, for a `BufferedProtocol`."""

    def __init__(self, loop: SimulatedLoop, end: End, protocol: asyncio.BufferedProtocol) -> None:
        super().__init__()
        self._loop, self._end, self._protocol = loop, end, protocol
        self._is_lost = False
        end.transport = self

    def write(self, data: Any) -> None:
        self._end.send(bytes(data))

    def deliver(self) -> None:
        received = self._end.received
        while received and not self._is_lost:
            space = memoryview(self._protocol.get_buffer(-1))
            count = min(len(space), len(received))
            space[:count] = received[:count]
            del received[:count]
            self._protocol.buffer_updated(count)
        if self._end.is_over:
            self._lose()

    def close(self) -> None:
        self._end.reset()
        self._loop.call_soon(self._lose)

    abort = close

    def is_closing(self) -> bool:
        return self._is_lost or self._end.is_over

    def _lose(self) -> None:
        if not self._is_lost:
            self._is_lost = True
            self._protocol.connection_lost(None)


class NetworkedLoop(SimulatedLoop):
    """The loop with the network functions that brokers and clients use."""

    network: Network

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BufferedProtocol],
        host: str,
        port: int,
        **_: object,
    ) -> tuple[Transport, asyncio.BufferedProtocol]:
        end = await self.network.connect(host, port)
        protocol = protocol_factory()
        transport = Transport(self, end, protocol)
        protocol.connection_made(transport)
        if end.received or end.is_over:
            self.call_soon(transport.deliver)
        return transport, protocol

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:  # type: ignore[override]
        self.network.add_reader(fd, callback, *args)

    def remove_reader(self, fd: Any) -> bool:
        return self.network.remove_reader(fd)

    def add_writer(self, fd: Any, *_: Any) -> None:  # type: ignore[override]
        raise AssertionError(f"{fd}: a simulated socket is never full")

    def remove_writer(self, _: Any) -> bool:
        return False
