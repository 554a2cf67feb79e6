"""`/brokers/ids/N`: a live broker and its addresses. The node's creation zxid is its epoch."""

import re
from collections.abc import Sequence

from msgspec import UNSET, Struct, UnsetType, field

from penstock.config.listener import Endpoint, SecurityProtocol

MAX_PORT = (1 << 16) - 1
MAX_TEXT = (1 << 15) - 1
"""The longest string in a response, in bytes."""


class BrokerRegistration(Struct, frozen=True, kw_only=True):
    """Written as version 5. Versions 1 to 4, which lack some fields, can be read."""

    features: dict[str, dict[str, int]] = field(default_factory=dict)
    listener_security_protocol_map: dict[str, SecurityProtocol] = field(default_factory=dict)
    endpoints: tuple[str, ...] = ()
    rack: str | UnsetType | None = UNSET
    jmx_port: int = -1
    port: int = -1
    host: str | None = None
    version: int = 5
    timestamp: str = "-1"
    unclean_shutdown: bool | UnsetType = field(name="page_cache_lost", default=UNSET)
    """A field of Penstock's own, which Kafka ignores: the broker may lack records that it had
    acknowledged, because its machine crashed or its logs were found damaged or missing.
    """

    log_dirs: tuple[str, ...] | UnsetType = UNSET
    cordoned_log_dirs: tuple[str, ...] | UnsetType = UNSET
    """Also Penstock's own: both settings as the broker was started with them (KIP-1066)."""

    def __post_init__(self) -> None:
        """Refuse an address or rack that no response can hold, when it is read."""
        for each in self.addresses():
            if each.port > MAX_PORT:
                raise ValueError(f"{each.port} is not a port")
            _check_length(each.host)
        _check_length(self.rack_name() or "")

    @classmethod
    def of(
        cls,
        addresses: Sequence[Endpoint],
        timestamp_ms: int,
        rack: str | None = None,
        *,
        unclean_shutdown: bool = False,
        log_dirs: Sequence[str] = (),
        cordoned_log_dirs: Sequence[str] = (),
    ) -> "BrokerRegistration":
        """`host` and `port` are for readers that expect a single plaintext address."""
        plain = [each for each in addresses if each.protocol is SecurityProtocol.PLAINTEXT]
        return cls(
            listener_security_protocol_map={each.listener: each.protocol for each in addresses},
            endpoints=tuple(_spelled(each) for each in addresses),
            port=plain[0].port if plain else -1,
            host=plain[0].host if plain else None,
            timestamp=str(timestamp_ms),
            rack=UNSET if rack is None else rack,
            unclean_shutdown=True if unclean_shutdown else UNSET,
            log_dirs=tuple(log_dirs) or UNSET,
            cordoned_log_dirs=tuple(cordoned_log_dirs) or UNSET,
        )

    def addresses(self) -> tuple[Endpoint, ...]:
        if self.endpoints:
            return tuple(self._parsed(each) for each in self.endpoints)
        plaintext = SecurityProtocol.PLAINTEXT
        return (Endpoint(plaintext.value, plaintext, self.host or "", self.port),)

    def rack_name(self) -> str | None:
        return None if isinstance(self.rack, UnsetType) else self.rack

    def _parsed(self, text: str) -> Endpoint:
        match = re.fullmatch(r"([^:/]+)://(?:\[([^\]]*)\]|([^:]*)):([0-9]+)", text)
        if match is None:
            raise ValueError(f"{text!r} is not name://host:port")
        listener, bracketed, host, port = match.groups()
        # Before version 4, a listener had the name of its protocol.
        protocol = self.listener_security_protocol_map.get(listener) or SecurityProtocol(listener)
        return Endpoint(listener, protocol, bracketed or host or "", int(port))


def _check_length(text: str) -> None:
    if len(text.encode()) > MAX_TEXT:
        raise ValueError(f"{text[:20]!r}... is too long")


def _spelled(each: Endpoint) -> str:
    host = f"[{each.host}]" if ":" in each.host else each.host
    return f"{each.listener}://{host}:{each.port}"
