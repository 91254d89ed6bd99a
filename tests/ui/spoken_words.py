"""The texts that the code gives to be translated, read from its source: calls of `say`, of `t` and of their like."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from specviz.ui.assets import STAGE_MODULES, STAGE_SCRIPT

PACKAGE = Path(__file__).resolve().parents[2] / "specviz"
SAYERS = {"say": slice(0, 1), "say_count": slice(1, 3)}
SCRIPT_SAYERS = {"t": 1, "phrase": 1, "parts": 1, "fill": 1, "count": 3}
STRING = re.compile(r"'((?:[^'\\]|\\.)*)'")


def python_templates() -> set[str]:
    """Return the templates of all sentences that Python says."""
    return {text for tree in _trees() for call in _calls(tree) for text in _templates_of(call)}


def python_texts() -> set[str]:
    """Return every text in the package, an f-string with `{}` for each value."""
    return {
        _text_of(node) for tree in _trees() for node in ast.walk(tree) if isinstance(node, ast.Constant | ast.JoinedStr)
    }


def script_templates() -> set[str]:
    """Return the texts that the scripts translate."""
    sources = [path.read_text(encoding="utf-8") for path in (STAGE_SCRIPT, *STAGE_MODULES.rglob("*.js"))]
    return {text for source in sources for text in _script_texts(source)}


def slots_of(template: str) -> set[str]:
    """Return the names of a template's slots, and the values that plotly fills in."""
    return set(re.findall(r"%?\{[\w.\[\]]+(?::[^}]*)?\}", template))


def _trees() -> Iterator[ast.Module]:
    for path in PACKAGE.rglob("*.py"):
        yield ast.parse(path.read_text(encoding="utf-8"))


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SAYERS:
            yield node


def _templates_of(call: ast.Call) -> Iterator[str]:
    for argument in call.args[SAYERS[call.func.id]]:
        choices = [argument.body, argument.orelse] if isinstance(argument, ast.IfExp) else [argument]
        for choice in choices:
            if isinstance(choice, ast.Constant):
                yield choice.value


def _text_of(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)


def _script_texts(source: str) -> Iterator[str]:
    source = re.sub(r"^\s*//.*$", "", source, flags=re.MULTILINE)
    for call in re.finditer(r"(?<!\w)(?<!\w\.)(t|phrase|parts|fill|count)\(", source):
        for argument in _arguments(source, call.end())[: SCRIPT_SAYERS[call[1]]]:
            yield from (text.replace("\\'", "'") for text in STRING.findall(argument))


def _arguments(source: str, start: int) -> list[str]:
    """Return the arguments of a call that begins at `start`, behind its parenthesis."""
    arguments, depth, last, i = [], 0, start, start
    while depth >= 0:
        quoted = STRING.match(source, i)
        if quoted:
            i = quoted.end()
            continue
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(source[i], 0)
        if (source[i] == "," and depth == 0) or depth < 0:
            arguments.append(source[last:i])
            last = i + 1
        i += 1
    return arguments
