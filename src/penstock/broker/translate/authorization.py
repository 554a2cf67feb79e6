"""Who may do what: everybody everything, since there is no authorizer."""

from typing import Final

NO_AUTHORIZER: Final = "No Authorizer is configured."
NO_RULES: Final = "No Authorizer is configured on the broker"
