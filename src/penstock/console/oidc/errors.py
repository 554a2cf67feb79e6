"""Why a login by OpenID Connect fails. The texts tell no secret."""


class ProviderFailed(Exception):
    """The provider cannot be reached, or answers what it should not."""
