"""Settings: mistakes are sentences, nothing is ignored."""

import pytest

from specviz.errors import SpecVizError
from specviz.settings import FIELDS_OF_METHOD, make_settings


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"k": 0}, "K should be greater than or equal to 1"),
        ({"k": 33}, "less than or equal to 32"),
        ({"max_new_tokens": 0}, "Max-new-tokens should be"),
        ({"temperature": -1}, "Temperature should be"),
        ({"temperature": 0.001}, "at least 0.01"),
        ({"temperature": float("nan")}, "finite"),
        ({"top_p": 0}, "Top-p should be"),
        ({"method": "medusa"}, "Method should be"),
        ({"nonsense": 1}, "There is no setting called nonsense"),
        ({"selection": "self-consistent", "temperature": 0.7}, "greedy"),
        ({"selection": "self-consistent", "candidates": 3}, "one candidate"),
        ({"k": 4, "rows": 3}, "at least k + 1 = 5"),
        ({"seed": -1}, "Seed should be"),
        ({"attn": "flash"}, "no setting called attn"),
        ({"cache": "static"}, "no setting called cache"),
    ],
)
def test_a_mistake_is_one_sentence(fields: dict, words: str):
    with pytest.raises(SpecVizError) as caught:
        make_settings(**fields)
    sentence = str(caught.value)
    assert words in sentence
    assert sentence.endswith(".") and "\n" not in sentence


@pytest.mark.parametrize("method", FIELDS_OF_METHOD)
def test_a_setting_of_another_method_is_refused_not_ignored(method: str):
    """Guards F09: apply or refuse, never ignore."""
    values = {"k": 2, "selection": "verified", "threshold": 0.1, "placeholder": "last-token", "nodes": 8, "depth": 3}
    values |= {"slot_attention": "causal", "candidates": 2, "rows": 32, "tree_top_k": 4, "confu_f": "off"}
    values |= {"experts": "fixed", "contemplate": "root"}
    for name, value in values.items():
        if name in FIELDS_OF_METHOD[method]:
            assert getattr(make_settings(method=method, **{name: value}), name) == value
        else:
            with pytest.raises(SpecVizError, match="does not use it"):
                make_settings(method=method, **{name: value})


def test_defaults_fill_only_what_was_left_open():
    settings = make_settings(method="lookahead", k=3).resolved({"k": 8, "rows": 64})
    assert (settings.k, settings.rows) == (3, 64)


def test_one_stop_text_or_several():
    assert make_settings(stop="END").stop == ("END",)
    assert make_settings(stop=["a", "", "b"]).stop == ("a", "b")
    assert make_settings(stop=None).stop == ()
