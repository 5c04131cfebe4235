"""Autonomy levels: what each asks for, which the evidence supports, and what is missing.

Example:
    >>> from robo_eval.gates import Readings, assess
    >>> assess(Readings(policy="arm", side="sim", values={})).level
    0
"""

from robo_eval.gates.assessment import Assessment, assess
from robo_eval.gates.audits import Audit
from robo_eval.gates.lacking import Lacking
from robo_eval.gates.profile import Profile, load_profile, profiles
from robo_eval.gates.quantities import QUANTITIES
from robo_eval.gates.readings import Readings
from robo_eval.gates.result import GateResult

__all__ = [
    "QUANTITIES",
    "Assessment",
    "Audit",
    "GateResult",
    "Lacking",
    "Profile",
    "Readings",
    "assess",
    "load_profile",
    "profiles",
]
