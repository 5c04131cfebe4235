"""The words of the taxonomy as people read them, and what they mean."""

from __future__ import annotations

import re
from typing import Final

from robo_eval_incidents.bodies import BODIES
from robo_eval_incidents.taxonomy import (
    RECORDABILITY,
    Answer,
    Category,
    Engagement,
    Severity,
    Status,
    Via,
)

SEVERITIES: Final = {
    Severity.NEAR_MISS: "near miss",
    Severity.MINOR: "minor",
    Severity.MAJOR: "major",
    Severity.CRITICAL: "critical",
}
SEVERITY_MEANINGS: Final = {
    Severity.NEAR_MISS: "a protective stop, or a breach of a distance or force margin",
    Severity.MINOR: "contact or damage below what has to be reported; first aid at most",
    Severity.MAJOR: "an injury that has to be reported, or significant damage",
    Severity.CRITICAL: "a severe injury, an uncontrolled hazard, or a breach of a standard",
}
STATUS_MEANINGS: Final = {
    Status.DRAFT: "drafted by a rule; nobody has looked at it",
    Status.REPORTED: "not yet reviewed by as many people as it needs",
    Status.CONFIRMED: "reviewed",
    Status.ACTING: "reviewed, with a corrective action that was not found effective yet",
    Status.CLOSED: "nothing is left to do",
    Status.DISMISSED: "reviewed and found to be none; it does not count",
}
DOORS: Final = {
    Via.WEB: "web page, logged in",
    Via.API: "a program, logged in",
    Via.CLI: "command line",
    Via.RULE: "rule",
    Via.IMPORT: "import",
}
ENGAGEMENTS: Final = {
    Engagement.AUTONOMOUS: "autonomous: a policy, nobody helping",
    Engagement.ASSISTED: "assisted: a policy, a person stepping in",
    Engagement.TELEOPERATED: "teleoperated",
    Engagement.MANUAL: "manual: moved by hand or pendant",
    Engagement.MAINTENANCE: "maintenance",
    Engagement.IDLE: "idle: powered, nothing asked of it",
    Engagement.OFF: "off",
    Engagement.UNKNOWN: "not known",
}
SIDES: Final = {"real": "real robot", "twin": "stand-in (twin)", "sim": "simulator"}
ANSWERS: Final = {Answer.YES: "yes", Answer.NO: "no", Answer.UNKNOWN: "not known"}


_FIELDS: Final = {name for body in BODIES.values() for name in body.model_fields}
_TERMS: Final = sorted({*Severity, *Category, *Engagement, *RECORDABILITY, *_FIELDS})
_TERM: Final = re.compile(rf"\b(?:{'|'.join(name for name in _TERMS if '_' in name)})\b")


def spoken(word: object) -> str:
    """A word of the taxonomy as people read it.

    Example:
        >>> spoken("person_contact")
        'person contact'
    """
    return str(word).replace("_", " ")


def in_words(text: str) -> str:
    """A sentence as people read it: words of the taxonomy and names of fields without underscores.

    Example:
        >>> in_words("incident lab/2 is near_miss; start_ns is not before end_ns of arm_1")
        'incident lab/2 is near miss; start is not before end of arm_1'
    """
    return _TERM.sub(lambda found: spoken(found[0].removesuffix("_ns")), text)
