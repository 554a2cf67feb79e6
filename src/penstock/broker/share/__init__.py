"""The leader of share-partitions: tracks which member holds which records, and until when
(KIP-932).
"""
