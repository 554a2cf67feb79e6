"""The warning of slow checks names their cause."""

import pytest

from penstock.broker import app


@pytest.mark.parametrize(
    ("environment", "cause"),
    [("1", "PENSTOCK_PURE is set"), ("", "installed without a C compiler")],
)
def test_the_warning_of_slow_checks_names_their_cause(
    environment: str,
    cause: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(app, "NATIVE", False)
    monkeypatch.setenv("PENSTOCK_PURE", environment)
    app.warn_of_slow_checks()
    assert [cause in each for each in caplog.messages] == [True]
