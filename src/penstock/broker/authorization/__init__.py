"""The permissions that each API needs: one table of guards, which run before the handlers."""
