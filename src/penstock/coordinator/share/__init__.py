"""The coordinator of share-partitions: keeps their state in `__share_group_state` (KIP-932)."""
