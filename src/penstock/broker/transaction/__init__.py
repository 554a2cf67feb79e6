"""Transactions outside their coordinator: markers, verification, producer ids."""
