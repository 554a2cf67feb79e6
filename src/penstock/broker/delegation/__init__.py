"""Delegation tokens: stored, followed, and turned into logins."""
