"""Parses certificates: the subject as Java writes it, and the expiry time.

A subject is in RFC 2253 form: `CN=alice,OU=data,O=Example`. It is read from the certificate's own
bytes: OpenSSL's Python wrapper loses the types of the values, which decide how Java writes them.
"""

from calendar import timegm
from collections.abc import Iterator
from typing import Final

import msgspec

from penstock.errors import ProtocolError

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.25": "DC",
    "0.9.2342.19200300.100.1.1": "UID",
}
"""The only attributes that RFC 2253 names; Java writes all others by number, in hex."""

_VERSION, _EXTENSIONS, _OID, _UTC_TIME = 0xA0, 0xA3, 0x06, 0x17
_SUBJECT_ALTERNATIVE_NAME: Final = "2.5.29.17"
_STRINGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E})
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString."""
_ESCAPED: Final = frozenset(',=+<>#;"\\')


class Certificate(msgspec.Struct, frozen=True):
    """The parts of a certificate that the broker uses."""

    subject: str
    """The subject in Java's RFC 2253 form."""
    expires_s: int
    """The last second of its validity, since the epoch."""
    alternative_names: frozenset[bytes]
    """Host names and addresses, each as its bytes in the certificate."""


def parse_certificate(data: bytes) -> Certificate:
    """Read a certificate in DER."""
    try:
        return _certificate(data)
    except (IndexError, ValueError):
        raise ProtocolError("the certificate cannot be read") from None


def _certificate(data: bytes) -> Certificate:
    _, outer, _ = _element(data, 0)
    _, signed, _ = _element(outer, 0)
    fields = [each for each in _elements(signed) if each[0] != _VERSION]
    _, _, _, (_, validity, _), (_, names, _) = fields[:5]
    relative = ["+".join(map(_attribute, _sets(one))) for _, one, _ in _elements(names)]
    extensions = [content for tag, content, _ in fields[5:] if tag == _EXTENSIONS]
    return Certificate(
        ",".join(relative[::-1]),
        _time(*list(_elements(validity))[1][:2]),
        frozenset(_alternative_names(extensions[0])) if extensions else frozenset(),
    )


def _time(tag: int, content: bytes) -> int:
    text = content.decode("ascii").rstrip("Z")
    if tag == _UTC_TIME:  # a two-digit year, from 1950 on
        text = ("19" if text[:2] >= "50" else "20") + text
    parts = (text[:4], *(text[at : at + 2] for at in range(4, 14, 2)))
    return timegm(tuple(map(int, parts)))


def _alternative_names(extensions: bytes) -> Iterator[bytes]:
    for _, extension, _ in _elements(_element(extensions, 0)[1]):
        parts = list(_elements(extension))
        if _oid(parts[0][1]) == _SUBJECT_ALTERNATIVE_NAME:
            _, names, _ = _element(parts[-1][1], 0)
            at = 0
            while at < len(names):
                _, _, end = _element(names, at)
                yield names[at:end]
                at = end


def _sets(relative_name: bytes) -> Iterator[bytes]:
    for _, attribute, _ in _elements(relative_name):
        yield attribute


def _attribute(content: bytes) -> str:
    tag, oid, end = _element(content, 0)
    if tag != _OID:
        raise ValueError("no attribute")
    number = _oid(oid)
    value_tag, value, _ = _element(content, end)
    keyword = _KEYWORDS.get(number)
    if keyword is None or value_tag not in _STRINGS:
        return f"{keyword or number}=#{content[end:].hex()}"
    return f"{keyword}={_escaped(value.decode('utf-8', 'replace'))}"


def _escaped(text: str) -> str:
    escaped = "".join(f"\\{each}" if each in _ESCAPED else each for each in text)
    escaped = escaped.replace("\0", "\\00")
    body = escaped.strip(" \r")
    lead = len(escaped) - len(escaped.lstrip(" \r"))
    start = "".join(f"\\{each}" for each in escaped[:lead])
    rest = "".join(f"\\{each}" for each in escaped[lead + len(body) :])
    return f"{start}{body}{rest}"


def _oid(content: bytes) -> str:
    first, numbers, value = content[0], [], 0
    for byte in content[1:]:
        value = value << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(value)
            value = 0
    head = min(first // 40, 2)
    return ".".join(map(str, (head, first - 40 * head, *numbers)))


def _elements(content: bytes) -> Iterator[tuple[int, bytes, int]]:
    at = 0
    while at < len(content):
        tag, value, at = _element(content, at)
        yield tag, value, at


def _element(data: bytes, at: int) -> tuple[int, bytes, int]:
    """Tag, content and end of the element at this position."""
    tag, length = data[at], data[at + 1]
    start = at + 2
    if length & 0x80:
        count = length & 0x7F
        length = int.from_bytes(data[start : start + count], "big")
        start += count
    end = start + length
    if end > len(data):
        raise ValueError("an element is longer than what it is in")
    return tag, data[start:end], end
