"""A serializer of one's own: a company as two texts, each behind its length.

python examples/applications/custom_serializer.py 127.0.0.1:9092 companies
"""

import struct
import sys
from dataclasses import dataclass

from penstock.sdk import Consumer, Producer


@dataclass(frozen=True)
class Company:
    name: str
    address: str


class CompanySerde:
    def serialize(self, company: Company, /) -> bytes:
        texts = [company.name.encode(), company.address.encode()]
        return b"".join(struct.pack(">I", len(each)) + each for each in texts)

    def deserialize(self, data: bytes, /) -> Company:
        texts, at = [], 0
        while at < len(data):
            (size,) = struct.unpack_from(">I", data, at)
            texts.append(data[at + 4 : at + 4 + size].decode())
            at += 4 + size
        name, address = texts
        return Company(name, address)


def main(bootstrap: str, topic: str) -> Company | None:
    config = {"bootstrap.servers": bootstrap}
    with Producer(config, value=CompanySerde()) as producer:
        producer.send(topic, Company("Acme", "1 Main Street"))
    reading = {**config, "group.id": "companies", "auto.offset.reset": "earliest"}
    with Consumer(reading, [topic], value=CompanySerde()) as consumer:
        return next(iter(consumer)).value


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
