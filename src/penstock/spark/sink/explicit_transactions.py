"""Transactions of clusters whose `transaction.version` is below 2 (KIP-890)."""

from typing import Final

from penstock.spark.client.connection import BlockingConnection

_EXPLICIT: Final = {0: 11, 26: 4, 28: 4}
"""The highest versions of Produce, EndTxn and TxnOffsetCommit without implicit adding."""


def use_explicit_versions(connection: BlockingConnection) -> None:
    """Limit the versions, so that only AddPartitionsToTxn adds partitions to a transaction."""
    for api, newest in _EXPLICIT.items():
        if connection.versions.get(api, 0) > newest:
            connection.versions[api] = newest
