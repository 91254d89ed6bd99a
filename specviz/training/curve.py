"""The curve of a training: loss of every step, figures on held-out answers now and then, as JSON and as a plot."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

RECENT = 50  # steps that the progress bar's mean goes over
Figures = dict[str, float]


@dataclass
class Curve:
    """Rows of figures: `steps` one a step (loss, tokens, seconds so far), `measures` one a measurement."""

    steps: list[Figures] = field(default_factory=list)
    measures: list[Figures] = field(default_factory=list)

    def add_step(self, step: int, figures: Figures) -> None:
        self.steps.append({"step": step, **figures})

    def add_measure(self, step: int, figures: Figures) -> None:
        self.measures.append({"step": step, **figures})

    @property
    def tokens_per_second(self) -> float:
        """Answer tokens a second over the recent steps."""
        recent = self.steps[-RECENT:]
        before = self.steps[-RECENT - 1]["seconds"] if len(self.steps) > RECENT else 0.0
        return sum(row["tokens"] for row in recent) / max(recent[-1]["seconds"] - before, 1e-9)

    def summary(self) -> str:
        """Return the recent loss, the speed and the last measured tau in a line."""
        recent = self.steps[-RECENT:]
        loss = sum(row["loss"] for row in recent) / len(recent)
        tau = f", held-out tau {self.measures[-1]['tau']:.3f}" if self.measures else ""
        return f"loss {loss:.3f}, {self.tokens_per_second:.0f} tokens/s{tau}"

    def save(self, folder: Path) -> None:
        """Write curve.json and the interactive curve.html."""
        (folder / "curve.json").write_text(json.dumps(self.to_dict()), encoding="utf-8")
        self.plot().write_html(folder / "curve.html", include_plotlyjs=True)

    def plot(self) -> go.Figure:
        """Return loss and held-out tau over the tokens seen."""
        figure = make_subplots(specs=[[{"secondary_y": True}]])
        seen = _cumulated(row["tokens"] for row in self.steps)
        figure.add_scatter(x=seen, y=[row["loss"] for row in self.steps], name="loss", line={"color": "#999999"})
        places = [seen[int(row["step"]) - 1] for row in self.measures]
        taus = [row["tau"] for row in self.measures]
        figure.add_scatter(
            x=places,
            y=taus,
            name="tau on held-out answers",
            line={"color": "#0072B2"},
            secondary_y=True,
            mode="lines+markers",
        )
        figure.update_xaxes(title="answer tokens seen")
        figure.update_yaxes(title="loss", secondary_y=False)
        figure.update_yaxes(title="tau of a greedy chain", secondary_y=True)
        return figure

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Curve:
        return cls(**value)


def _cumulated(counts: Any) -> list[float]:
    total, sums = 0.0, []
    for count in counts:
        total += count
        sums.append(total)
    return sums
