"""What a visitor asks for, checked against what the operator offers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from specviz.errors import SpecVizError
from specviz.settings import RunSettings, make_settings
from specviz.ui.backend import Backend


@dataclass(frozen=True)
class VisitorLimits:
    """What one visitor may take of a shared machine."""

    prompts: int = 4
    prompt_characters: int = 4000
    new_tokens: int = 512
    wall_seconds: float = 120.0
    queue: int = 20
    trace_bytes: int = 64 * 2**20


@dataclass(frozen=True)
class RunRequest:
    """Prompts, one a row, and checked settings."""

    prompts: list[str]
    settings: RunSettings


def make_request(
    prompt: str | Sequence[str], fields: dict[str, Any], backend: Backend, limits: VisitorLimits
) -> RunRequest:
    """Check a request; raise SpecVizError with one sentence on the first mistake.

    A field that is None was not asked for.
    """
    prompts = _check_prompts([prompt] if isinstance(prompt, str) else list(prompt or ()), limits)
    settings = make_settings(**{name: value for name, value in fields.items() if value is not None})
    _check_names(settings, backend)
    _check_machine(settings, backend)
    if settings.max_new_tokens > limits.new_tokens:
        raise SpecVizError(f"This page decodes at most {limits.new_tokens} new tokens a run.")
    return RunRequest(prompts, settings)


def _check_prompts(prompts: list[str], limits: VisitorLimits) -> list[str]:
    if not prompts or not all(isinstance(text, str) and text.strip() for text in prompts):
        raise SpecVizError("The prompt is empty: please type one.")
    if len(prompts) > limits.prompts:
        raise SpecVizError(f"This page decodes at most {limits.prompts} prompts together, not {len(prompts)}.")
    longest = max(len(text) for text in prompts)
    if longest > limits.prompt_characters:
        raise SpecVizError(
            f"A prompt may have at most {limits.prompt_characters} characters on this page, not {longest}."
        )
    return prompts


def _check_names(settings: RunSettings, backend: Backend) -> None:
    if settings.method not in backend.methods:
        raise SpecVizError(f"The method {settings.method} is not offered here; choose {_listed(backend.methods)}.")
    if settings.model not in backend.model_names:
        raise SpecVizError(f"There is no model called {settings.model} here; choose {_listed(backend.model_names)}.")
    if settings.drafter is not None and settings.drafter not in backend.drafter_names:
        offered = f"choose {_listed(backend.drafter_names)}" if backend.drafter_names else "none is loaded"
        raise SpecVizError(f"There is no drafter called {settings.drafter} here; {offered}.")


def _check_machine(settings: RunSettings, backend: Backend) -> None:
    """Refuse another device or dtype than the operator's: a visitor must not load a model twice."""
    for name in ("device", "dtype"):
        asked = getattr(settings, name)
        if asked == "auto":
            continue
        given = getattr(backend.info(settings.model), name)
        if not given.startswith(asked):
            raise SpecVizError(f"The {name} is chosen by whoever runs this page: it is {given}, not {asked}.")


def _listed(names: Sequence[str]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
