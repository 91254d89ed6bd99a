"""What the page needs of an engine; `specviz.decoding.engine.Engine` fits, and so does a scripted one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from specviz.decoding.events import Event
from specviz.settings import RunSettings
from specviz.trace import ModelInfo

Decode = Callable[[list[str], RunSettings], Iterator[Event]]


class Backend(Protocol):
    """Loads the models that the operator named, and decodes with them."""

    @property
    def model_names(self) -> Sequence[str]:
        """Names that a visitor may pick a model by; the first is the default."""

    @property
    def drafter_names(self) -> Sequence[str]:
        """Names that a visitor may pick a drafter by."""

    @property
    def methods(self) -> Sequence[str]:
        """Methods that can run with the loaded drafters."""

    def info(self, model: str) -> ModelInfo:
        """Describe a model; loads it if needed."""

    def stream(self, prompts: list[str], settings: RunSettings) -> Iterator[Event]:
        """Decode; closing the generator stops the work after the step in hand."""
