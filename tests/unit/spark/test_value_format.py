"""The part of value formats that needs no Spark."""

import re
import string

import pytest

from penstock.spark.pipeline.value_format import MAY_GO_ON

ONE = '{"id": 1, "s": {"a": [1]}}'


@pytest.mark.parametrize("between", ["", " ", "\r\n", ",", ", ", "\0", "\0\n", "}"])
def test_a_value_of_two_json_objects_is_looked_at_again(between: str) -> None:
    assert re.search(MAY_GO_ON, f"{ONE}{between}{ONE}\n")


@pytest.mark.parametrize("garbage", [*string.ascii_letters, *string.digits, *'"([-+.:;#/\\<>'])
def test_a_value_with_garbage_at_its_end_is_looked_at_again(garbage: str) -> None:
    assert re.search(MAY_GO_ON, f"{ONE} {garbage}")


@pytest.mark.parametrize("end", ["", " \n", ",", ",\r\n", "\0", "\n\0"])
def test_most_json_objects_are_parsed_once(end: str) -> None:
    for each in (ONE, "{}", f'{{"a": {ONE}, "b" : [{{"c":[{{}}]}} , 1]\n}}'):
        assert not re.search(MAY_GO_ON, each + end)
