"""Dead letters of share groups (KIP-1191): their content, and why none is written twice.

Contract. A record that a member rejects, or that was delivered too often, becomes exactly one dead
letter, and no member gets it again:

1. The state records that the record is being archived. From then on it is not delivered to any
   member, whichever broker leads.
2. The leader writes the letter, in a batch of its own, with acks=all.
3. The state records that the record is archived.

If a leader is lost between 1 and 3, the next leader does 2 and 3. The log of the dead letters drops
the duplicate then, even if the former leader's request arrives late: the batch has a producer id
derived from the record, and sequence 0, and a log drops repeated batches of a producer. It
remembers producers for `producer.id.expiration.ms` (a day). Only if the group gets another dead
letter topic, or its topic more partitions, while a leader is lost between 1 and 3, may both write
one: the logs differ then.
"""

from hashlib import sha256
from typing import Final

import msgspec

from penstock.coordinator.share.state import SharePartitionKey
from penstock.record.build import build_batch
from penstock.record.dead_letter import DeadLetter, share_letter_headers
from penstock.record.record import Record

FIRST_PRODUCER_ID: Final = 1 << 62
"""Regular producer ids are allocated from 0 upwards and never reach this."""


class ShareLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A record that becomes a dead letter."""

    key: SharePartitionKey
    state_epoch: int
    """The share-partition's state epoch: after a reset of the group's offsets, letters are new."""
    topic: str
    offset: int
    deliveries: int
    is_rejected: bool

    @property
    def producer_id(self) -> int:
        """The same for the same record, whichever leader writes it, and however often."""
        name = f"{self.key}:{self.state_epoch}:{self.offset}"
        return FIRST_PRODUCER_ID | int.from_bytes(sha256(name.encode()).digest()[:8]) >> 2

    @property
    def reason(self) -> str:
        return "rejected by a member" if self.is_rejected else f"delivered {self.deliveries} times"


def letter_batch(letter: ShareLetter, copied: Record | None, note: str, now_ms: int) -> bytearray:
    """The letter as a batch. Without the record it has headers only; `note` gives the reason."""
    dead = DeadLetter(
        error=f"{letter.reason}; {note}" if note else letter.reason,
        source="share",
        attempt=letter.deliveries,
        topic=letter.topic,
        partition=letter.key.partition,
        offset=letter.offset,
        group=letter.key.group,
    )
    record = Record(
        0,
        now_ms,
        None if copied is None else copied.key,
        None if copied is None else copied.value,
        share_letter_headers(dead, () if copied is None else copied.headers),
    )
    return build_batch([record], producer_id=letter.producer_id, producer_epoch=0, base_sequence=0)
