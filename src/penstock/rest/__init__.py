"""Produces records over HTTP: `POST /topics/{name}` and `POST /log`."""
