"""The leader of share-partitions: who has which records, until when, and how often (KIP-932)."""
