"""What each API needs to be allowed: one table of guards, which stand before the handlers."""
