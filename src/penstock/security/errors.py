"""Errors of a refused login."""

from penstock.errors import ErrorCode, KafkaError


class AuthenticationFailed(KafkaError):
    """The login is refused. The client gets the text; `because` goes to the broker's log."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED

    def __init__(self, text: str, *, because: str = "") -> None:
        super().__init__(text)
        self.because = because or text


class InvalidCredentials(AuthenticationFailed):
    """The login is refused for a reason that is kept from the client: it could reveal, for example,
    whether a user exists.
    """
