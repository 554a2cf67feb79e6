"""All cases."""

from differential.case import Case
from differential.cases import (
    acls,
    configs,
    consumer_groups,
    features,
    fetch,
    groups,
    malformed,
    metadata,
    migration,
    offsets,
    open_transactions,
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
    *consumer_groups.CASES,
    *migration.CASES,
    *transactions.CASES,
    *open_transactions.CASES,
    *pending_offsets.CASES,
    *acls.CASES,
    *features.CASES,
]
