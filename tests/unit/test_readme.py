"""The README's Python runs as it stands, on a recorded run."""

import re
from pathlib import Path

import pytest
from plotly.graph_objects import Figure

import specviz
from specviz.trace import save_trace

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_its_code_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    run = specviz.load_trace(ROOT / "assets" / "traces" / "01-confu-arithmetic.json.gz")
    save_trace(run, tmp_path / "trace.json")
    shown: list[Figure] = []
    monkeypatch.setattr(Figure, "show", lambda figure: shown.append(figure))  # a notebook's own part
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    printed = capsys.readouterr().out
    assert len(shown) == 2 and all(figure.data for figure in shown)
    assert printed.startswith("Step 3: of 29 drafted tokens") and "tokens with 8 nodes" in printed


def test_the_analyses_that_it_names_are_there():
    (named,) = re.findall(r"`specviz.analysis` \((.*?), …\)", README)
    names = named.replace("`", "").split(", ")
    assert len(names) == 4 and all(callable(getattr(specviz.analysis, name)) for name in names)
