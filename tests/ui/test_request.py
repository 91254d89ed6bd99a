"""What a visitor may ask for; everything else is one sentence."""

from __future__ import annotations

import pytest
from fake_engine import FakeEngine

from specviz.errors import SpecVizError
from specviz.ui.request import VisitorLimits, make_request

ENGINE = FakeEngine(model_names=["scripted", "other"], drafter_names=["mine"], methods=["plain", "lookahead", "eagle3"])
LIMITS = VisitorLimits()


def ask(prompt="hello", **fields):
    return make_request(prompt, {"model": "scripted", **fields}, ENGINE, LIMITS)


def test_one_prompt_or_several():
    assert ask("a").prompts == ["a"]
    assert ask(["a", "b"]).prompts == ["a", "b"]


@pytest.mark.parametrize(
    ("prompt", "fields", "sentence"),
    [
        ("", {}, "The prompt is empty"),
        ("  \n", {}, "The prompt is empty"),
        ([], {}, "The prompt is empty"),
        (None, {}, "The prompt is empty"),
        (["a", ""], {}, "The prompt is empty"),
        (["a"] * 5, {}, "at most 4 prompts"),
        ("a" * 9000, {}, "at most 4000 characters"),
        ("a", {"model": "/etc/passwd"}, "There is no model called"),
        ("a", {"method": "eagle3", "drafter": "../x"}, "There is no drafter called"),
        ("a", {"method": "confu"}, "The method confu is not offered here"),
        ("a", {"method": "nonsense"}, "Method"),
        ("a", {"k": 0}, "K should be greater than or equal to 1, not 0."),
        ("a", {"k": "many"}, "K should be a valid integer"),
        ("a", {"k": 4, "method": "plain"}, "does not use it"),
        ("a", {"max_new_tokens": 0}, "greater than or equal to 1"),
        ("a", {"max_new_tokens": 600}, "at most 512 new tokens"),
        ("a", {"temperature": "hot"}, "valid number"),
        ("a", {"seed": -1}, "greater than or equal to 0"),
        ("a", {"dtype": "float16"}, "The dtype is chosen by whoever runs this page"),
        ("a", {"device": "cuda"}, "The device is chosen by whoever runs this page"),
        ("a", {"nonsense": 1}, "There is no setting called nonsense"),
    ],
)
def test_mistakes_are_sentences(prompt, fields, sentence):
    with pytest.raises(SpecVizError) as error:
        ask(prompt, **fields)
    assert sentence in str(error.value)
    assert str(error.value).endswith(".") and "\n" not in str(error.value)


def test_the_operators_own_dtype_may_be_named():
    assert ask(dtype="float32", device="cpu").settings.dtype == "float32"


def test_numbers_may_come_as_text():
    assert ask(k="3", temperature="0.5").settings.k == 3
