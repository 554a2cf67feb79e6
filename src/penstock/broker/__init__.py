"""The broker: listeners, sessions, one handler per API, and the composition of all parts."""
