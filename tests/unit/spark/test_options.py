"""Options of Spark's sources and sinks: names, types, and errors about wrong ones."""

import pickle

import pytest

from penstock.errors import ConfigError
from penstock.spark.options import SUPPORTED, NoEffect, Options, Unsupported, Use

KNOWN: dict[str, Use] = {
    "startingOffsets": SUPPORTED,
    "groupIdPrefix": NoEffect("no group is made up"),
    "kafka.auto.offset.reset": Unsupported("use startingOffsets"),
}


def test_names_ignore_case() -> None:
    options = Options({"STARTINGoffsets": " latest "})
    assert options.text("startingOffsets") == "latest"
    assert options.warnings(KNOWN) == []


@pytest.mark.parametrize("typo", ["startingOffset", "startngoffsets", "kafka.auto.offset.resett"])
def test_an_error_about_a_misspelt_option_suggests_the_nearest(typo: str) -> None:
    with pytest.raises(ConfigError, match=f"unknown option {typo.lower()}; did you mean"):
        Options({typo: "x"}).warnings(KNOWN)


def test_an_option_unlike_all_others_gets_no_suggestion() -> None:
    with pytest.raises(ConfigError) as refused:
        Options({"zzz": "x"}).warnings(KNOWN)
    assert str(refused.value) == "unknown option zzz"


def test_options_without_effect_are_reported() -> None:
    assert Options({"groupidprefix": "x"}).warnings(KNOWN) == [
        "option groupIdPrefix has no effect: no group is made up"
    ]


def test_unsupported_options_are_errors() -> None:
    with pytest.raises(ConfigError, match=r"kafka\.auto\.offset\.reset.*use startingOffsets"):
        Options({"kafka.auto.offset.reset": "earliest"}).warnings(KNOWN)


@pytest.mark.parametrize("text", ["", "many", "1.5", "-1", "6"])
def test_an_error_about_a_number_names_its_option(text: str) -> None:
    with pytest.raises(ConfigError, match="option minPartitions"):
        Options({"minPartitions": text}).integer("minPartitions", 1, low=0, high=5)


def test_values_have_types_and_defaults() -> None:
    options = Options({"a": "7", "b": "TRUE", "c": "Latest", "d": "no"})
    assert (options.integer("a", 1), options.integer("z", 1)) == (7, 1)
    assert (options.flag("b", default=False), options.flag("z", default=True)) == (True, True)
    assert options.one_of("c", ("earliest", "latest"), "") == "latest"
    assert options.optional("z") is None
    with pytest.raises(ConfigError, match="option d: 'no' is not one of true, false"):
        options.flag("d", default=False)
    with pytest.raises(ConfigError, match="option z is missing"):
        options.required("z")


def test_options_can_be_pickled_for_executors() -> None:
    assert pickle.loads(pickle.dumps(Options({"A": "1"}))).text("a") == "1"
