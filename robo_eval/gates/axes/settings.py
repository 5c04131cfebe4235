"""Numbers the axes are computed with. All of them are this project's choices."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, Strict, model_validator
from pydantic_core import PydanticCustomError

from robo_eval.core.names import unknown_name
from robo_eval.core.yaml_form import Count, Section
from robo_eval.formulas.axes import FULL_DEPTH, H_MIN_DAYS, HORIZON, SIZE_PRIOR
from robo_eval.formulas.composite import AXES, GAMMA, WEIGHT_PROFILES
from robo_eval.formulas.links import DELTA
from robo_eval.formulas.revision import REVISION_SCALE

Number = Annotated[float, Strict(), Field(ge=-1e15, le=1e15)]
"""A number that something may measure; `true` and `"1"` are none."""
Share = Annotated[Number, Field(ge=0.0, le=1.0)]
Positive = Annotated[Number, Field(gt=0.0)]


class AnchorSettings(Section):
    """Raw values of an axis that count 0 and 1.

    Attributes:
        baseline: Counts 0: a strong feasible baseline.
        expert: Counts 1: an expert team, or the ceiling. Below the baseline where lower is better.
        scale: `log` compares logarithms.
        source: Where the numbers come from; empty for ends that follow from the definition.
    """

    baseline: Number = 0.0
    expert: Number = 1.0
    scale: Literal["linear", "log"] = "linear"
    source: str = ""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.baseline == self.expert:
            raise ValueError(
                f"expert: equals the baseline, {self.baseline:g}; two different anchors are needed"
            )
        if self.scale == "log" and min(self.baseline, self.expert) <= 0.0:
            raise ValueError("scale: log needs anchors above 0")
        return self


class AxisSettings(Section):
    """How each axis is computed.

    Attributes:
        horizon: Uninterrupted actions that count as full autonomy (A).
        success_gated: Whether only solved episodes count for autonomy (A).
        family_quality: Mean quality from which on a task family is covered (G).
        family_qualities: The same for families that have their own, by name (G).
        full_depth: Plan depth that counts 1 (P).
        half_life_days: Half-life of memory at which retention counts one half (M).
        recall_k: Items of each query that count (M).
        tool_prior: Tool categories at which their number counts one half (T).
        tool_success: Success under drift from which on a category counts (T).
        tool_drift: Magnitude of drift the headline is for (T).
        revision_scale: Gain, weighted by autonomy, that counts 1 (R).
        revision_weights: Weights of having proposed a revision, applied it and validated it (R).
        positive_part: Whether a harmful revision counts 0 instead of subtracting (R).
        anchors: Raw values that count 0 and 1, by axis; of an axis that is not named 0 and 1, of $
            none: what is dear or cheap nobody can say for all.
    """

    horizon: Positive = HORIZON
    success_gated: Annotated[bool, Strict()] = False
    family_quality: Share = 0.7
    family_qualities: dict[str, Share] = Field(default_factory=dict)
    full_depth: Positive = FULL_DEPTH
    half_life_days: Positive = H_MIN_DAYS
    recall_k: Annotated[Count, Field(ge=1)] = 5
    tool_prior: Annotated[Number, Field(ge=0.0)] = SIZE_PRIOR
    tool_success: Share = 0.5
    tool_drift: str = "mild"
    revision_scale: Positive = REVISION_SCALE
    revision_weights: tuple[Share, Share, Share] = (1 / 3, 1 / 3, 1 / 3)
    positive_part: Annotated[bool, Strict()] = False
    anchors: dict[str, AnchorSettings] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name in self.anchors:
            if name not in AXES:
                raise ValueError(f"anchors: {unknown_name('axis', name, AXES)}")
        if not any(self.revision_weights):
            raise ValueError("revision_weights: are all 0; at least one must be above 0")
        return self


def _weights(given: object) -> object:
    """Check weights by hand: of a choice of types pydantic names neither field nor remedy."""
    if isinstance(given, str):
        if given not in WEIGHT_PROFILES:
            problem = str(unknown_name("weights", given, list(WEIGHT_PROFILES)))
            raise PydanticCustomError("weights", "{problem}", {"problem": problem})
        return given
    if not isinstance(given, dict):
        raise PydanticCustomError("weights", "must name weights, or be a table of them by axis")
    for name, weight in given.items():
        if name not in AXES:
            problem = str(unknown_name("axis", name, AXES))
            raise PydanticCustomError("weights", "{problem}", {"problem": problem})
        is_number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not is_number or not 0.0 <= weight <= 1e15:
            raise PydanticCustomError(
                "weights", "the weight of {name} must be a number of at least 0", {"name": name}
            )
    if not any(given.values()):
        raise PydanticCustomError("weights", "are all 0; at least one must be above 0")
    return given


class IndexSettings(Section):
    """How the axes become one number.

    Attributes:
        weights: A profile of weights, or a weight by axis; an axis that is not named weighs 0.
        gamma: How much unevenness lowers the adjusted index.
        uniformity: What evenness is; see `formulas.jaggedness`.
        resamples: Of the bootstrap.
    """

    weights: Annotated[str | dict[str, float], BeforeValidator(_weights)] = "general"
    gamma: Annotated[Number, Field(ge=0.0)] = GAMMA
    uniformity: Literal["gm_am", "min_max", "one_minus_cv"] = "gm_am"
    resamples: Annotated[Count, Field(ge=100, le=100_000)] = 2000


class ProgressSettings(Section):
    """How progress over checkpoints is described.

    Attributes:
        link: Scale on which slopes are compared.
        delta: Length of a step on it.
        tolerance: How much the slope may fall per unit of resource and still count as steady.
        rate_exponent: How growth fades as the rest gets small, for the bound on reaching all of it.
        bandwidth: Resources to either side that a local fit reads; none for the whole window.
        resamples: Of the block bootstrap.
    """

    link: Literal["surprisal", "logit"] = "surprisal"
    delta: Positive = DELTA
    tolerance: Annotated[Number, Field(ge=0.0)] = 0.01
    rate_exponent: Annotated[Number, Field(gt=0.0, lt=1.0)] = 0.5
    bandwidth: Positive | None = None
    resamples: Annotated[Count, Field(ge=100, le=20_000)] = 2000


class FrontierSettings(Section):
    """How the delegability frontier is computed.

    Attributes:
        most_interventions: Interventions per episode that no autonomy allows.
        bins: Degrees of autonomy between 0 and 1.
        quality: Quality from which on work may be delegated.
        resamples: Of the bootstrap.
    """

    most_interventions: Positive = 5.0
    bins: Annotated[Count, Field(ge=2, le=100)] = 10
    quality: Share = 0.75
    resamples: Annotated[Count, Field(ge=100, le=20_000)] = 2000
