"""The codecs generated into a file equal those generated at first use."""

import pytest
from codegen.__main__ import WIRE
from codegen.hot import functions, text

from penstock.errors import ProtocolError
from penstock.wire import hot
from penstock.wire.apis import Api
from penstock.wire.codec import encode
from penstock.wire.decoder import DecoderSource


def test_the_file_matches_the_declarations() -> None:
    assert (WIRE / "hot.py").read_text() == text(), "run make codegen"


@pytest.mark.parametrize(
    ("api", "version"), functions(), ids=lambda each: getattr(each, "name", None)
)
def test_an_error_names_the_field_of_the_failed_line(api: Api, version: int) -> None:
    """Also when compiled, at a line far from the beginning of its file."""
    made = DecoderSource(version, flexible=True).function(api.request)
    whole = encode(api.request(), version)
    for size in range(len(whole)):
        for damaged in (whole[:size], whole[:size] + b"\xff" * 9):
            refusals = []
            for decode in (made, hot.DECODERS[api.request, version]):
                with pytest.raises(ProtocolError) as refused:
                    decode(damaged, 0)
                refusals.append(str(refused.value))
            assert refusals[0] == refusals[1]
            assert f"{api.request.__name__} v{version}, " in refusals[0]
