"""Encodes progress: into a commit's metadata, or page by page into a compacted topic. Pure.

Metadata is text of at most `offset.metadata.max.bytes` (4,096). It holds the pages, compressed; if
they do not fit, it says that they are in the topic. There, each page is a record, so that a commit
writes only pages that changed.
"""

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from penstock.sdk.errors import SdkError
from penstock.sdk.parallel.progress import PAGE_BYTES, PageState

MOST_METADATA: Final = 4_096
INLINE: Final = "p1:"
IN_TOPIC: Final = "p1@"
"""Followed by the id of the pages in the topic."""
_HEAD: Final = struct.Struct(">QQH")
"""First page, number of pages, size of the following page in bytes; size 0: all are full."""


class UnreadableProgress(SdkError):
    """The metadata was written by another program, or by a newer version."""


def to_metadata(pages: Iterable[PageState]) -> str | None:
    """None if it is too long; empty if nothing is finished out of order."""
    body = bytearray()
    run = first = -1
    for each in pages:
        packed = b"" if each.bits is None else zlib.compress(each.bits, 1)
        if not packed and each.number == first + run and run > 0:
            run += 1
            _HEAD.pack_into(body, len(body) - _HEAD.size, first, run, 0)
        else:
            first, run = each.number, 0 if packed else 1
            body += _HEAD.pack(each.number, 1, len(packed)) + packed
        if len(body) > MOST_METADATA:
            return None
    if not body:
        return ""
    text = INLINE + base64.b85encode(zlib.compress(body, 9)).decode()
    return text if len(text) <= MOST_METADATA else None


def from_metadata(text: str) -> list[PageState]:
    """The pages in inline metadata; any other text raises `UnreadableProgress`."""
    if not text.startswith(INLINE):
        raise UnreadableProgress(f"the commit's metadata is not ours: {text[:40]!r}")
    try:
        body = zlib.decompress(base64.b85decode(text.removeprefix(INLINE)))
        return list(_pages(body))
    except (ValueError, zlib.error, struct.error, binascii.Error) as error:
        raise UnreadableProgress(f"the commit's metadata cannot be read: {error}") from None


def _pages(body: bytes) -> Iterator[PageState]:
    at = 0
    while at < len(body):
        first, count, size = _HEAD.unpack_from(body, at)
        at += _HEAD.size
        if size:
            yield PageState(first, _unpacked(body[at : at + size]))
            at += size
        else:
            yield from (PageState(first + each, None) for each in range(count))


def page_value(page: PageState) -> bytes:
    """The value of a page's record; empty if the page is full."""
    return b"" if page.bits is None else zlib.compress(page.bits, 1)


def page_from_value(number: int, value: bytes) -> PageState:
    return PageState(number, _unpacked(value) if value else None)


def page_key(prefix: str, number: int) -> bytes:
    return f"{prefix}\0{number}".encode()


def key_prefix(group: str, topic: str, partition: int, identity: str) -> str:
    """Pages with another id are obsolete: the group's offsets may have been reset since."""
    return f"{group}\0{topic}\0{partition}\0{identity}"


def page_number(key: bytes, prefix: str) -> int | None:
    """The number of the page that the key names; None if its prefix is another."""
    head, zero, number = key.rpartition(b"\0")
    return int(number) if zero and head == prefix.encode() and number.isdigit() else None


def _unpacked(data: bytes) -> bytes:
    inflating = zlib.decompressobj()
    bits = inflating.decompress(data, PAGE_BYTES)
    if len(bits) != PAGE_BYTES or inflating.unconsumed_tail:
        raise UnreadableProgress(f"a page of progress has {len(bits)} bytes")
    return bits
