"""The plotly.js that pages carry: its bundle of flat charts, a third of the whole that comes with the Python package.

Every figure here is flat (lines, bars, heat maps). The page draws its first chart sooner with it, and a page to take
along is 3 MB smaller. `assets/vendor` holds it unchanged (npm: plotly.js-cartesian-dist-min), with its licence; a test
holds its major version to the Python package's.
"""

from __future__ import annotations

from pathlib import Path

PLOTLY_SCRIPT = Path(__file__).resolve().parents[2] / "assets" / "vendor" / "plotly-cartesian.min.js"


def inline_plotly() -> str:
    """Return the script's text as it may stand in a script element."""
    return PLOTLY_SCRIPT.read_text(encoding="utf-8").replace("</script", "<\\/script")
