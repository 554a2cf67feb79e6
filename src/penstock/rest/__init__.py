"""Records over HTTP: `POST /topics/{name}` and `POST /log`."""
