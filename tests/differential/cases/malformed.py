"""ApiVersions, and bytes that are not a valid request."""

from struct import pack

from differential.case import API_OF, Case, Raw, case, highest
from differential.cases import configs, fetch, metadata, offsets, producers, replicas, topics
from differential.link import CORRELATION_ID
from penstock.record.batch import HEADER_BYTES
from penstock.wire.apis import Api
from penstock.wire.client_frame import request_frame
from penstock.wire.messages.api_versions import ApiVersionsRequest
from penstock.wire.messages.init_producer_id import InitProducerIdRequest
from penstock.wire.messages.metadata import MetadataRequest
from penstock.wire.messages.produce import ProduceRequest
from penstock.wire.schema import Message

VERSIONS = [
    case("asked", ApiVersionsRequest(client_software_name="d", client_software_version="1")),
    *(
        case(f"software name {name!r}",
             ApiVersionsRequest(client_software_name=name, client_software_version="1"), since=3)
        for name in ("", " ", "a b", "a-b", "-a", "a-", "a.b", ".a", "é", "a_b", "x" * 300)
    ),
    *(
        case(f"software version {version!r}",
             ApiVersionsRequest(client_software_name="d", client_software_version=version),
             since=3)
        for version in ("", "1.0", "-1", "1 0", "1.")
    ),
]  # fmt: skip


def framed(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


def header(key: int, version: int, client_id: bytes | None = b"d") -> bytes:
    """A request header without tagged fields."""
    size = -1 if client_id is None else len(client_id)
    return pack(">hhih", key, version, CORRELATION_ID, size) + (client_id or b"")


def _raw(name: str, *raw: Raw, api: type[Message] = ApiVersionsRequest) -> Case:
    """The bytes contain a version, so one version of the case is enough."""
    low = API_OF[api].low
    return case(f"bytes, {name}", *raw, api=api, since=low, until=low)


TWO_PHASE_COMMIT = b"\0\2x" + pack(">iqh", 60_000, -1, -1) + b"\1\0\0"
"""The end of a header, and an InitProducerId of version 6 for two-phase commit (KIP-939)."""

REFUSED_VERSIONS = {
    f"ApiVersions {version}": Raw(framed(header(18, version)), answered_as=("ApiVersions", 0))
    for version in (5, 6, 99, 32767, -1)
}

FRAMES = [
    *(_raw(name, raw) for name, raw in REFUSED_VERSIONS.items()),
    _raw("a frame of size zero", Raw(framed(b""))),
    _raw("a frame of negative size", Raw(pack(">i", -1))),
    _raw("a frame of the least size", Raw(pack(">i", -(2**31)))),
    _raw("a frame larger than allowed", Raw(pack(">i", 104_857_601) + bytes(64))),
    _raw("a frame of the greatest size", Raw(pack(">i", 2**31 - 1) + bytes(64))),
    _raw("http", Raw(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")),
    _raw("a tls hello", Raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64))),
    _raw("a frame of one byte", Raw(framed(b"\0"))),
    _raw("a frame of seven bytes", Raw(framed(bytes(7)))),
    _raw("half a size, then the end", Raw(b"\0\0", ends=True)),
    _raw("half a frame, then the end", Raw(framed(header(18, 0))[:-2], ends=True)),
    _raw("nothing, then the end", Raw(b"", ends=True)),
    _raw("a whole request, then the end",
         Raw(framed(header(18, 0)), answered_as=("ApiVersions", 0), ends=True)),
    _raw("an unknown key", Raw(framed(header(9999, 0)))),
    _raw("a negative key", Raw(framed(header(-1, 0)))),
    _raw("a key between those known", Raw(framed(header(73, 0)))),
    _raw("a version that Kafka itself does not hold for stable",
         Raw(framed(header(22, 6) + TWO_PHASE_COMMIT)), api=InitProducerIdRequest),
    _raw("no client id", Raw(framed(header(18, 0, None)), answered_as=("ApiVersions", 0))),
    _raw("an empty client id", Raw(framed(header(18, 0, b"")), answered_as=("ApiVersions", 0))),
    _raw("a client id of 3,000 bytes",
         Raw(framed(header(18, 0, b"x" * 3000)), answered_as=("ApiVersions", 0))),
    _raw("a client id that is no utf-8",
         Raw(framed(header(18, 0, b"\xff\xfe")), answered_as=("ApiVersions", 0))),
    _raw("a client id of size -2", Raw(framed(pack(">hhih", 18, 0, CORRELATION_ID, -2)))),
    _raw("a client id longer than the frame",
         Raw(framed(pack(">hhih", 18, 0, CORRELATION_ID, 50) + b"x"))),
    _raw("a header without client id", Raw(framed(pack(">hhi", 18, 0, CORRELATION_ID)))),
    _raw("a header without its tags", Raw(framed(header(18, 3)))),
    _raw("two requests in one write",
         Raw(framed(header(18, 0)) + framed(header(18, 0)), answered_as=("ApiVersions", 0))),
    _raw("tags in the header that nobody knows",
         Raw(framed(header(18, 3) + b"\x01\x63\x03abc" + b"\x02d\x021\x00"),
             answered_as=("ApiVersions", 3))),
    _raw("tags in the body that nobody knows",
         Raw(framed(header(18, 3) + b"\x00" + b"\x02d\x021\x01\x63\x03abc"),
             answered_as=("ApiVersions", 3))),
    _raw("a tag longer than the frame",
         Raw(framed(header(18, 3) + b"\x00" + b"\x02d\x021\x01\x63\x30abc"))),
    _raw("a varint that never ends", Raw(framed(header(18, 3) + b"\x00" + b"\xff" * 10))),
    _raw("a null where none is allowed", Raw(framed(header(18, 3) + b"\x00" + b"\x00\x00\x00"))),
]  # fmt: skip

STRINGS = [
    _raw("a topic that is no utf-8",
         Raw(framed(header(3, 4) + pack(">ih", 1, 2) + b"\xff\xfe" + b"\0"),
             answered_as=("Metadata", 4)), api=MetadataRequest),
    _raw("a null topic name before nulls",
         Raw(framed(header(3, 4) + pack(">ih", 1, -1) + b"\0"), answered_as=("Metadata", 4)),
         api=MetadataRequest),
    _raw("a string of size -2",
         Raw(framed(header(3, 4) + pack(">ih", 1, -2) + b"\0")), api=MetadataRequest),
    _raw("an array of size -2", Raw(framed(header(3, 4) + pack(">i", -2) + b"\0")),
         api=MetadataRequest),
    _raw("an array of a million in nothing",
         Raw(framed(header(3, 4) + pack(">i", 1_000_000) + b"\0")), api=MetadataRequest),
    _raw("a boolean of 2",
         Raw(framed(header(3, 4) + pack(">i", 0) + b"\x02"), answered_as=("Metadata", 4)),
         api=MetadataRequest),
    _raw("records of size -2",
         Raw(framed(header(0, 3) + pack(">hhiihcii", -1, -1, 1000, 1, 1, b"t", 1, 0)
                    + pack(">i", -2))), api=ProduceRequest),
    _raw("records longer than the frame",
         Raw(framed(header(0, 3) + pack(">hhiihcii", -1, -1, 1000, 1, 1, b"t", 1, 0)
                    + pack(">i", 500) + bytes(HEADER_BYTES))), api=ProduceRequest),
]  # fmt: skip


def _samples() -> dict[Api, Message]:
    """One ordinary request of every API that the other tables test."""
    samples: dict[Api, Message] = {}
    for table in (fetch, metadata, offsets, producers, topics, configs, replicas):
        for known in table.CASES:
            for request in known.requests:
                if isinstance(request, Message):
                    samples.setdefault(API_OF[type(request)], request)
    return samples


def _sample_cases(api: Api, request: Message) -> list[Case]:
    """The versions above and below the supported range, and truncated bodies."""
    name, low, high = api.name, api.low, highest(api)
    flexible = b"\0"
    found = [
        _raw(f"{name} {version}", Raw(framed(header(api.key, version) + flexible)),
             api=api.request)
        for version in (high + 2, low - 1, -7)
        if not (api.name == "Produce" and version == low - 1)
    ]  # fmt: skip
    for version in sorted({low, high}):
        whole = bytes(request_frame(api, version, CORRELATION_ID, "d", request))[4:]
        empty = header(api.key, version) + (flexible if version >= api.flexible else b"")
        found += [
            _raw(f"{name} {version} without its last byte", Raw(framed(whole[:-1])),
                 api=api.request),
            _raw(f"{name} {version} without a body", Raw(framed(empty)), api=api.request),
        ]  # fmt: skip
    return found


CASES: list[Case] = [
    *VERSIONS,
    *FRAMES,
    *STRINGS,
    *(found for api, request in _samples().items() for found in _sample_cases(api, request)),
]
