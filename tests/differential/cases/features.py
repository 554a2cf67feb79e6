"""Features: which updates are refused, and that new levels are returned. Each case ends at the
highest level.
"""

from typing import Any

from differential.case import Case, Eventually, case
from differential.rules import by, ignored
from penstock.metadata.features import SUPPORTED
from penstock.wire.messages.api_versions import ApiVersionsRequest
from penstock.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

UP, SAFE_DOWN, UNSAFE_DOWN = 1, 2, 3
TRANSACTIONS, GROUPS = "transaction.version", "group.version"
ASKED = ApiVersionsRequest(client_software_name="d", client_software_version="1")


def _common(features: list[Any]) -> object:
    """The features that both brokers have."""
    return by("name")([each for each in features if each.name in SUPPORTED])


RULES = {
    "ApiVersionsResponse": {
        "api_keys": ignored,
        "supported_features": _common,
        "finalized_features": _common,
    }
}


def _to(level: int, kind: int = UP, of: str = TRANSACTIONS) -> FeatureUpdateKey:
    return FeatureUpdateKey(
        feature=of, max_version_level=level, upgrade_type=kind, allow_downgrade=kind != UP
    )


def _update(*updates: FeatureUpdateKey, validates: bool = False) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(feature_updates=list(updates), validate_only=validates)


def _holds(level: int) -> Eventually:
    """Brokers learn of a level after the answer. Level 0 is not returned at all."""
    return Eventually(
        ASKED,
        lambda reported: (
            level
            == next(
                (each.max_version_level for each in reported.finalized_features
                 if each.name == TRANSACTIONS), 0)
        ),
    )  # fmt: skip


CASES: list[Case] = [
    case("none", _update()),
    case("the level that holds", _update(_to(2))),
    case("a higher one", _update(_to(3))),
    case("a negative one", _update(_to(-1, SAFE_DOWN))),
    case("an unknown feature", _update(_to(1, of="strange.version"))),
    case("an unknown feature to zero", _update(_to(0, of="strange.version"))),
    case("an empty name", _update(_to(1, of=""))),
    case("a lower one without a word", _update(_to(1))),
    case("one of two refused", _update(_to(0, SAFE_DOWN, GROUPS), _to(5)), ASKED,
         api=UpdateFeaturesRequest, rules=RULES),
    case("an unknown type", _update(_to(1, kind=7)), since=1),
    case("type zero", _update(_to(1, kind=0)), since=1),
    case("only validated", _update(_to(1, SAFE_DOWN), validates=True),
         _update(_to(9), validates=True), since=1),
    case("down and up", _update(_to(1, SAFE_DOWN)), _holds(1), ASKED, _update(_to(2, SAFE_DOWN)),
         _update(_to(2)), _holds(2), ASKED, api=UpdateFeaturesRequest, rules=RULES, since=1),
    case("down as old tools ask for it", _update(_to(1, SAFE_DOWN)), _update(_to(2)), _holds(2),
         api=UpdateFeaturesRequest, until=0),
    case("to zero and back", _update(_to(0, UNSAFE_DOWN)), _holds(0), ASKED, _update(_to(2)),
         _holds(2), ASKED, api=UpdateFeaturesRequest, rules=RULES, since=1),
]  # fmt: skip
