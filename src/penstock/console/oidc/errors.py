"""Errors of a login by OpenID Connect. Their texts contain no secrets."""


class ProviderFailed(Exception):
    """The provider cannot be reached, or its response is invalid."""
