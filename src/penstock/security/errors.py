"""Why a client is not let in."""

from penstock.errors import ErrorCode, KafkaError


class AuthenticationFailed(KafkaError):
    """The login is refused. The client is told the text; `because` is for the broker's log."""

    code = ErrorCode.SASL_AUTHENTICATION_FAILED

    def __init__(self, text: str, *, because: str = "") -> None:
        super().__init__(text)
        self.because = because or text


class InvalidCredentials(AuthenticationFailed):
    """The login is refused for a reason that the client is not told: it may reveal, for example,
    whether a user exists.
    """
