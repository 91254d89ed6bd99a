"""The layers: who may import whom (the table is in the README's structure section)."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEAVY = {"torch", "transformers", "accelerate", "safetensors"}
RULES = {
    "settings.py errors.py trace.py mask_trace.py metrics.py sentence.py table.py text.py": HEAVY
    | {"gradio", "plotly", "numpy"},
    "terminal.py": HEAVY | {"gradio", "plotly"},
    "target decoding drafters": {"gradio", "plotly", "specviz.figures", "specviz.ui"},
    "training evaluation": {"gradio", "specviz.ui", "specviz.commands"},
    "commands __main__.py": {"gradio", "plotly", "specviz.ui"},
    "analysis lessons": HEAVY
    | {
        "gradio",
        "plotly",
        "numpy",
        "specviz.figures",
        "specviz.decoding",
        "specviz.target",
        "specviz.drafters",
        "specviz.ui",
    },
    "figures": HEAVY | {"gradio", "specviz.decoding", "specviz.target", "specviz.drafters", "specviz.ui"},
    "ui": HEAVY | {"specviz.target", "specviz.drafters"},
}


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def modules_of(names: str) -> list[Path]:
    paths = [ROOT / "specviz" / name for name in names.split()]
    return [file for path in paths if path.exists() for file in (path.rglob("*.py") if path.is_dir() else [path])]


@pytest.mark.parametrize("names", RULES)
def test_a_layer_imports_nothing_that_it_must_not(names: str):
    forbidden = RULES[names]
    offences = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules_of(names)
        for name in imports_of(file)
        if any(name == bad or name.startswith(bad + ".") for bad in forbidden)
    ]
    assert offences == []


def test_traces_and_figures_work_where_torch_is_not_installed():
    code = (
        "import sys\n"
        "for name in ('torch', 'transformers', 'gradio', 'safetensors', 'accelerate'): sys.modules[name] = None\n"
        "import specviz, specviz.trace, specviz.metrics, specviz.terminal\n"
        "assert specviz.figures.tree_figure and specviz.analysis\n"
        "import specviz.analysis, specviz.figures, specviz.lessons\n"
        "print(specviz.load_trace.__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("load_trace", 0), done.stderr
