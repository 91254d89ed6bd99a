"""What a run is asked to do, checked once.

`None` in a method's own setting means "not asked for": the engine fills in the best measured
value for the loaded target and drafter (`RunSettings.resolved`), and a setting that the chosen
method does not use is refused instead of being ignored.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from specviz.errors import SpecVizError

Method = Literal["plain", "lookahead", "eagle3", "confu"]
Selection = Literal["verified", "self-consistent"]
Placeholder = Literal["vocab-mean", "prompt-mean", "last-token", "learned"]
SlotAttention = Literal["diagonal", "causal"]

METHODS: tuple[Method, ...] = ("plain", "lookahead", "eagle3", "confu")
LOOKAHEAD_FIELDS = ("k", "selection", "threshold", "placeholder", "slot_attention", "candidates", "rows", "groups")
TREE_FIELDS = ("nodes", "depth", "tree_top_k")
CONFU_FIELDS = ("confu_f", "experts", "contemplate")
FIELDS_OF_METHOD: dict[str, tuple[str, ...]] = {
    "plain": (),
    "lookahead": LOOKAHEAD_FIELDS,
    "eagle3": TREE_FIELDS,
    "confu": TREE_FIELDS + CONFU_FIELDS,
}


class RunSettings(BaseModel):
    """Everything a run is asked to do; immutable, checked at construction by `make_settings`."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    method: Method = "lookahead"
    model: str = "bundled"
    drafter: str | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    max_new_tokens: int = Field(default=128, ge=1, le=4096)
    temperature: float = Field(default=0.0, ge=0.0, le=5.0)
    top_p: float = Field(default=1.0, gt=0.0, le=1.0)
    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    stop: tuple[str, ...] = ()
    raw: bool = False
    record: Literal["light", "full"] = "full"
    attention_row: int | None = Field(default=None, ge=0, le=1023)
    compare_plain: bool = False

    k: int | None = Field(default=None, ge=1, le=32)
    selection: Selection | None = None
    threshold: float | None = Field(default=None, ge=0.0, le=1.0)
    placeholder: Placeholder | None = None
    slot_attention: SlotAttention | None = None
    candidates: int | None = Field(default=None, ge=1, le=64)
    rows: int | None = Field(default=None, ge=2, le=1024)
    groups: int | None = Field(default=None, ge=1, le=512)

    nodes: int | None = Field(default=None, ge=1, le=256)
    depth: int | None = Field(default=None, ge=1, le=32)
    tree_top_k: int | None = Field(default=None, ge=1, le=64)

    confu_f: Literal["on", "off"] | None = None
    experts: Literal["routed", "fixed"] | None = None
    contemplate: Literal["all", "root"] | None = None

    @field_validator("stop", mode="before")
    @classmethod
    def _stop_as_tuple(cls, value: Any) -> Any:
        texts = (value,) if isinstance(value, str) else tuple(value or ())
        return tuple(text for text in texts if text != "")

    @field_validator("temperature")
    @classmethod
    def _no_underflow(cls, value: float) -> float:
        if 0 < value < 0.01:
            raise ValueError("should be 0 (greedy) or at least 0.01")
        return value

    @model_validator(mode="after")
    def _refuse_foreign_fields(self) -> RunSettings:
        used = FIELDS_OF_METHOD[self.method]
        for name in LOOKAHEAD_FIELDS + TREE_FIELDS + CONFU_FIELDS:
            if getattr(self, name) is not None and name not in used:
                owners = [method for method, fields in FIELDS_OF_METHOD.items() if name in fields]
                raise ValueError(
                    f"{_flag(name)} is a setting of {' and '.join(owners)}; the method {self.method} does not use it"
                )
        return self

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> RunSettings:
        if self.selection == "self-consistent":
            if self.temperature > 0:
                raise ValueError("the self-consistent selection is greedy: set temperature 0, or selection verified")
            if self.candidates not in (None, 1):
                raise ValueError("the self-consistent selection takes one candidate for a slot: set candidates 1")
        if self.rows is not None and self.k is not None and self.rows < self.k + 1:
            raise ValueError(f"rows must be at least k + 1 = {self.k + 1}: the last token and its {self.k} slots")
        if self.attention_row is not None and self.record == "light":
            raise ValueError("attention-row needs the record level full")
        return self

    @property
    def exact(self) -> bool:
        """Whether the acceptance rule is lossless."""
        return self.selection != "self-consistent"

    def resolved(self, defaults: dict[str, Any]) -> RunSettings:
        """Return the settings with every field that is `None` taken from `defaults`."""
        missing = {name: value for name, value in defaults.items() if getattr(self, name) is None}
        return make_settings(**{**self.model_dump(), **missing}) if missing else self


def make_settings(**fields: Any) -> RunSettings:
    """Check `fields` and return the settings; raise SpecVizError with one sentence on the first mistake."""
    try:
        return RunSettings(**fields)
    except ValidationError as error:
        raise SpecVizError(_sentence(error)) from None


def _flag(field: str) -> str:
    return field.replace("_", "-")


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    if not first["loc"]:
        return _finish(str(first["ctx"]["error"]))
    name = str(first["loc"][0])
    if first["type"] == "extra_forbidden":
        return f"There is no setting called {_flag(name)}."
    problem = first["msg"].removeprefix("Input ").removeprefix("Value error, ")
    return _finish(f"{_flag(name)} {problem}, not {first['input']!r}")


def _finish(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:].rstrip(".") + "."
