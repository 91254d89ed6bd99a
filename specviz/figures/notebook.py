"""From the plain dicts to plotly's own objects, for notebooks and tests; the page never needs this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specviz.figures.frame import PlotlyDict
from specviz.figures.mask import expand_hover

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def as_figure(figure: PlotlyDict) -> Figure:
    """Return a validated plotly Figure without template, a mask with its hover sentences.

    Raises ValueError where plotly refuses a field.
    """
    from plotly.graph_objects import Figure  # slow to import, and the page does without

    drawn = Figure(expand_hover(figure))
    return drawn.update_layout(template="none")
