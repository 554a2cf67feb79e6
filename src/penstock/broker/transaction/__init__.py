"""Transactions beyond their coordinator: markers, verification, producer ids."""
