"""One module per API. Its docstring is the API's contract; rules live in the layers below."""
