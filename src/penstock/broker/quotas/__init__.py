"""Quotas of clients: measured as Kafka measures them. Modules here decide; sessions hold back."""
