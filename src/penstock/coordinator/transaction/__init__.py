"""Transactions: who writes in which, how each ends, and that every participant hears of it."""
