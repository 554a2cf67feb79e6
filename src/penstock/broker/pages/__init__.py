"""The pages that a broker serves over HTTP, and the documentation page of its APIs."""
