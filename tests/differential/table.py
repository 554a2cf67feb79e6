"""All cases."""

from differential.case import Case
from differential.cases import (
    configs,
    features,
    fetch,
    groups,
    malformed,
    metadata,
    offsets,
    pending_offsets,
    produce,
    producers,
    replicas,
    sequences,
    topics,
    transactions,
)

CASES: list[Case] = [
    *malformed.CASES,
    *metadata.CASES,
    *produce.CASES,
    *sequences.CASES,
    *fetch.CASES,
    *offsets.CASES,
    *producers.CASES,
    *topics.CASES,
    *configs.CASES,
    *replicas.CASES,
    *groups.CASES,
    *transactions.CASES,
    *pending_offsets.CASES,
    *features.CASES,
]
