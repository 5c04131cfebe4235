"""The closed lists of words an incident is described by, and what each of them means."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from robo_eval.core.defaults import SEVERITIES


class Severity(StrEnum):
    """How bad an event was; the mildest first.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7.
    """

    NEAR_MISS = "near_miss"
    """A protective stop, or a breach of a distance or force margin."""
    MINOR = "minor"
    """Contact or damage below what has to be reported; first aid at most."""
    MAJOR = "major"
    """An injury that has to be reported, or significant damage."""
    CRITICAL = "critical"
    """A severe injury, an uncontrolled hazard, or a breach of a standard."""

    @property
    def rank(self) -> int:
        """0 for the mildest."""
        return SEVERITIES.index(self.value)

    @property
    def needs_two_people(self) -> bool:
        """Whether one person alone cannot settle it."""
        return self in (Severity.MAJOR, Severity.CRITICAL)


def worst(*severities: Severity) -> Severity:
    """The worst of some severities, as one physical event is one incident at its highest.

    Example:
        >>> worst(Severity.MINOR, Severity.CRITICAL, Severity.NEAR_MISS).value
        'critical'
    """
    return max(severities, key=lambda severity: severity.rank)


class Category(StrEnum):
    """What kind of event it was."""

    PERSON_CONTACT = "person_contact"
    COLLISION = "collision"
    SEPARATION_BREACH = "separation_breach"
    FORCE_LIMIT = "force_limit"
    SPEED_LIMIT = "speed_limit"
    WORKSPACE_LIMIT = "workspace_limit"
    EMERGENCY_STOP = "emergency_stop"
    PROTECTIVE_STOP = "protective_stop"
    WATCHDOG = "watchdog"
    BAD_COMMAND = "bad_command"
    SAFETY_FUNCTION = "safety_function"
    UNEXPECTED_MOTION = "unexpected_motion"
    DROPPED_LOAD = "dropped_load"
    DAMAGE = "damage"
    ELECTRICAL = "electrical"
    FIRE = "fire"
    OTHER = "other"


MEANINGS: Final[dict[Category, str]] = {
    Category.PERSON_CONTACT: "the robot, its tool or its load touched a person",
    Category.COLLISION: "the robot hit an object or itself",
    Category.SEPARATION_BREACH: "a person or object came nearer than the distance margin",
    Category.FORCE_LIMIT: "a force, torque or effort margin was exceeded",
    Category.SPEED_LIMIT: "a velocity or acceleration limit was exceeded",
    Category.WORKSPACE_LIMIT: "robot or task left the space it was allowed",
    Category.EMERGENCY_STOP: "an emergency stop device was actuated",
    Category.PROTECTIVE_STOP: "a protective stop of another cause",
    Category.WATCHDOG: "a heartbeat or a measurement stayed away for too long",
    Category.BAD_COMMAND: "a policy asked for something that cannot be passed on",
    Category.SAFETY_FUNCTION: "a safety function itself failed or was not available",
    Category.UNEXPECTED_MOTION: "the robot moved when or where nobody expected it",
    Category.DROPPED_LOAD: "a load was lost",
    Category.DAMAGE: "robot, tool or surroundings were damaged otherwise",
    Category.ELECTRICAL: "electric shock, arc or short circuit",
    Category.FIRE: "fire, smoke or overheating",
    Category.OTHER: "none of these; the description says what",
}
"""One line on each category."""


class Engagement(StrEnum):
    """Who was in control of the robot."""

    AUTONOMOUS = "autonomous"
    """A policy, with nobody helping."""
    ASSISTED = "assisted"
    """A policy, with a person stepping in."""
    TELEOPERATED = "teleoperated"
    MANUAL = "manual"
    """Moved by hand or by a pendant."""
    MAINTENANCE = "maintenance"
    IDLE = "idle"
    """Powered, with nothing asked of it."""
    OFF = "off"
    UNKNOWN = "unknown"


class Via(StrEnum):
    """By which door a record came in, and so how far its author is vouched for."""

    WEB = "web"
    """The web page: the author had logged in."""
    API = "api"
    """The web page's interface for programs: the same login."""
    CLI = "cli"
    """The command line: the author is whoever they said they are."""
    RULE = "rule"
    """A rule that read what the guard or the log said."""
    IMPORT = "import"
    """A table from elsewhere."""


class Status(StrEnum):
    """How far an incident has got."""

    DRAFT = "draft"
    """Drafted by a rule; nobody has looked at it."""
    REPORTED = "reported"
    """Reported by a person, or looked at by fewer people than it needs."""
    CONFIRMED = "confirmed"
    """Reviewed."""
    ACTING = "acting"
    """Reviewed, with a corrective action that has not been found effective."""
    CLOSED = "closed"
    DISMISSED = "dismissed"
    """Reviewed and found to be none, or to be in the log already; it does not count."""


class Answer(StrEnum):
    """Answer to a question."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


RECORDABILITY: Final[dict[str, str]] = {
    "work_related": "Did it arise from work, or at the workplace?",
    "medical_treatment": "Was there medical treatment beyond first aid?",
    "lost_consciousness": "Did somebody lose consciousness?",
    "days_away": "Was somebody away from work on a later day because of it?",
    "restricted_work": "Was somebody's work restricted, or were they moved to other work?",
    "significant_diagnosis": "Did a physician diagnose a significant injury or illness?",
    "hospital": "Was somebody admitted to hospital, or was there an amputation or loss of an eye?",
    "fatality": "Did somebody die?",
}
"""Questions in the manner of OSHA's recording criteria; guidance, see docs/vocabulary.md."""
