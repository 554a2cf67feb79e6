"""Transcripts of the transaction coordinator; `PENSTOCK_REWRITE=1` rewrites the events."""

import os
from pathlib import Path

import pytest

from penstock.config.transaction import TransactionConfig
from support.transactions.transaction_transcript import replayed

TRANSCRIPTS = sorted((Path(__file__).parent / "transactions").glob("*.txt"))

CONFIG = TransactionConfig(
    transactional_id_expiration_ms=60_000,
    transaction_remove_expired_transaction_cleanup_interval_ms=5_000,
)


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_coordinator_follows_the_transcript(path: Path) -> None:
    actual = replayed(path, CONFIG)
    if os.environ.get("PENSTOCK_REWRITE"):
        path.write_text(actual)
    assert actual == path.read_text()
