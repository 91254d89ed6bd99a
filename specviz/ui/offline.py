"""A run as one HTML file that works without a server: scripts, plotly.js, the run, its record and its analyses.

The scripts are the page's own. A file may not import its neighbours, so each module is a data URL in an import map.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from specviz.figures.plotly_script import inline_plotly
from specviz.sentence import say
from specviz.trace import RunTrace
from specviz.ui.analyses import answer_steps, answer_whole_run
from specviz.ui.assets import (
    STAGE_MODULES,
    STAGE_SCRIPT,
    TEMPLATE,
    collect_constants,
    read_styles,
)
from specviz.ui.packing import ItemStream, trace_items, write_base64, write_json
from specviz.ui.record import record_steps
from specviz.ui.words import ENGLISH, translate_values

RELATIVE_IMPORT = re.compile(r"(from\s+')(\.{1,2}/[^']+)(')")

PAGE = """<!doctype html>
<html lang="@@LANGUAGE@@">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>SpecViz: a run to take along</title>
<style>
body { margin: 0; padding: 1rem; font-family: system-ui, sans-serif; background: #ffffff; }
body.dark { background: #0b0f19; }
h1 { font-size: 1.2rem; margin: 0 0 0.75rem; color: #6b7280; }
body.dark h1 { color: #a3adba; }
#offline { @@STYLES@@ }
</style>
<script type="importmap">@@MODULES@@</script>
</head>
<body>
<script>if (matchMedia('(prefers-color-scheme: dark)').matches) document.body.classList.add('dark');</script>
<h1>SpecViz</h1>
<main id="offline">@@TEMPLATE@@</main>
<script type="application/json" id="run">@@RUN@@</script>
<script type="module">
import { start } from 'specviz/stage.js';
import { unpack } from 'specviz/stage/inbox.js';
const { answers, error, ...given } = JSON.parse(document.getElementById('run').textContent);
start({
  ...given, element: document.getElementById('offline'), props: { value: given.value },
  server: { answer: async () => ({ error }) }, answers: await unpack(answers),
  early: [], isOffline: true, fileUrl: (path) => path,
});
</script>
<script>@@PLOTLY@@</script>
</body>
</html>
"""


NEEDS_SERVER = say("This needs a running SpecViz: load the trace there.")


def offline_page(
    runs: Sequence[RunTrace], name: str = "", lesson: dict[str, Any] | None = None, language: str = ENGLISH
) -> str:
    """Return the page of one run, or of the rows of a batch; `lesson` is opened on it, with its places."""
    answers = [answer_whole_run(run) | {"steps": answer_steps(run)} for run in runs]
    given = {
        "constants": collect_constants({}),
        "language": language,
        "lesson": lesson,
        "error": NEEDS_SERVER,
        "answers": _pack(translate_values(answers, language)),
        "value": {
            "run": runs[0].run_id,
            "n": 0,
            "packed": write_base64(ItemStream(language).pack(trace_items(runs, "recorded", "offline", name))),
            "records": [record_steps(run, 0, len(run.steps)) for run in runs],
        },
    }
    parts = {
        "LANGUAGE": language,
        "STYLES": read_styles(),
        "MODULES": _write_inert({"imports": _read_modules()}),
        "TEMPLATE": TEMPLATE,
        "RUN": _write_inert(translate_values(given, language)),
        "PLOTLY": inline_plotly(),
    }
    return re.sub("@@([A-Z]+)@@", lambda found: parts[found[1]], PAGE)


def _pack(value: Any) -> str:
    return write_base64(zlib.compress(write_json(value).encode("utf-8", "surrogatepass"), 9))


def _write_inert(value: Any) -> str:
    """Write JSON that no text inside can leave: in a script element `<` alone is markup."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _read_modules() -> dict[str, str]:
    """Return every module as a data URL by its name in the import map."""
    paths = [STAGE_SCRIPT, *sorted(STAGE_MODULES.rglob("*.js"))]
    return {_name_module(path): _make_url(path) for path in paths}


def _name_module(path: Path) -> str:
    return f"specviz/{path.resolve().relative_to(STAGE_SCRIPT.parent.resolve()).as_posix()}"


def _make_url(path: Path) -> str:
    own = path.parent

    def name_absolutely(found: re.Match[str]) -> str:
        return f"{found[1]}{_name_module(own / PurePosixPath(found[2]))}{found[3]}"

    text = RELATIVE_IMPORT.sub(name_absolutely, path.read_text(encoding="utf-8"))
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode('ascii')}"
