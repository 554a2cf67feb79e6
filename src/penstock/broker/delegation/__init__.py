"""Delegation tokens: stores and follows them, and derives login credentials from them."""
