"""The formulas of the AAI scale (autonomous AI): numbers in, numbers out, None where undefined.

What is this project's choice and not the paper's is a keyword, and its docstring says so.

References:
    Chojecki (2025), An Operational Kardashev-Style Scale for Autonomous AI - Towards AGI and
    Superintelligence, arXiv:2511.13411.
"""

from robo_eval.core.defaults import PENALTIES, SEVERITIES, SEVERITY_WEIGHTS
from robo_eval.formulas.axes import (
    Memory,
    autonomy,
    calibrate,
    generality,
    memory,
    planning,
    throughput,
    tool_economy,
)
from robo_eval.formulas.composite import (
    AXES,
    WEIGHT_PROFILES,
    Jaggedness,
    aai_index,
    index_delta_se,
    jaggedness,
)
from robo_eval.formulas.dependability import (
    RecoveryAutonomy,
    Reliability,
    quality_of_control,
    recovery_autonomy,
    reliability,
)
from robo_eval.formulas.embodied import Reweighted, embodiment, s2r, s2r_reweighted
from robo_eval.formulas.frontier import Delegability, delegability, non_increasing_fit
from robo_eval.formulas.improvement import (
    Kappa,
    KappaTime,
    LocalQuadratic,
    kappa,
    kappa_time,
    local_quadratic,
    meta_elasticity,
)
from robo_eval.formulas.incidents import (
    IncidentRates,
    RateInterval,
    incident_rates,
    poisson_rate_ci,
    ss,
    ss_of_rates,
    ss_pessimistic,
)
from robo_eval.formulas.judgement import (
    Cognitive,
    WorldModel,
    cognitive,
    stated_probability,
    superhuman_margin,
    world_model,
)
from robo_eval.formulas.links import link_power_step, link_step, link_steps_between, link_value
from robo_eval.formulas.revision import RevisionEvent, SelfRevision, self_revision
from robo_eval.formulas.teamwork import Sociality, sociality
from robo_eval.formulas.telemetry import (
    ContinuousScore,
    EscapeBounds,
    continuous_score,
    escape_velocity,
    rate_escape,
)

__all__ = [
    "AXES",
    "PENALTIES",
    "SEVERITIES",
    "SEVERITY_WEIGHTS",
    "WEIGHT_PROFILES",
    "Cognitive",
    "ContinuousScore",
    "Delegability",
    "EscapeBounds",
    "IncidentRates",
    "Jaggedness",
    "Kappa",
    "KappaTime",
    "LocalQuadratic",
    "Memory",
    "RateInterval",
    "RecoveryAutonomy",
    "Reliability",
    "RevisionEvent",
    "Reweighted",
    "SelfRevision",
    "Sociality",
    "WorldModel",
    "aai_index",
    "autonomy",
    "calibrate",
    "cognitive",
    "continuous_score",
    "delegability",
    "embodiment",
    "escape_velocity",
    "generality",
    "incident_rates",
    "index_delta_se",
    "jaggedness",
    "kappa",
    "kappa_time",
    "link_power_step",
    "link_step",
    "link_steps_between",
    "link_value",
    "local_quadratic",
    "memory",
    "meta_elasticity",
    "non_increasing_fit",
    "planning",
    "poisson_rate_ci",
    "quality_of_control",
    "rate_escape",
    "recovery_autonomy",
    "reliability",
    "s2r",
    "s2r_reweighted",
    "self_revision",
    "sociality",
    "ss",
    "ss_of_rates",
    "ss_pessimistic",
    "stated_probability",
    "superhuman_margin",
    "throughput",
    "tool_economy",
    "world_model",
]
