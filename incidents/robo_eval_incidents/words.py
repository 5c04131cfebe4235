"""The closed lists of words an incident is described by, each with its meaning."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Self

from robo_eval.core.defaults import SEVERITIES


class Word(StrEnum):
    """A word of a closed list, with what it means."""

    meaning: str

    def __new__(cls, word: str, meaning: str = "") -> Self:
        """A word as it is kept, and what people read beside it."""
        made = str.__new__(cls, word)
        made._value_ = word
        made.meaning = meaning
        return made

    @property
    def label(self) -> str:
        """The word as people read it."""
        return spoken(self.value)


class Severity(Word):
    """How bad an event was; the mildest first.

    References:
        Chojecki (2025), arXiv:2511.13411, section 7.
    """

    NEAR_MISS = "near_miss", "a protective stop, or a breach of a distance or force margin"
    MINOR = "minor", "contact or damage below what has to be reported; first aid at most"
    MAJOR = "major", "an injury that has to be reported, or significant damage"
    CRITICAL = "critical", "a severe injury, an uncontrolled hazard, or a breach of a standard"

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


class Category(Word):
    """What kind of event it was."""

    PERSON_CONTACT = "person_contact", "the robot, its tool or its load touched a person"
    COLLISION = "collision", "the robot hit an object or itself"
    SEPARATION_BREACH = (
        "separation_breach",
        "a person or object came nearer than the distance margin",
    )
    FORCE_LIMIT = "force_limit", "a force, torque or effort margin was exceeded"
    SPEED_LIMIT = "speed_limit", "a velocity or acceleration limit was exceeded"
    WORKSPACE_LIMIT = "workspace_limit", "robot or task left the space it was allowed"
    EMERGENCY_STOP = "emergency_stop", "an emergency stop device was actuated"
    PROTECTIVE_STOP = "protective_stop", "a protective stop of another cause"
    WATCHDOG = "watchdog", "a heartbeat or a measurement stayed away for too long"
    BAD_COMMAND = "bad_command", "a policy asked for something that cannot be passed on"
    SAFETY_FUNCTION = "safety_function", "a safety function itself failed or was not available"
    UNEXPECTED_MOTION = "unexpected_motion", "the robot moved when or where nobody expected it"
    DROPPED_LOAD = "dropped_load", "a load was lost"
    DAMAGE = "damage", "robot, tool or surroundings were damaged otherwise"
    ELECTRICAL = "electrical", "electric shock, arc or short circuit"
    FIRE = "fire", "fire, smoke or overheating"
    OTHER = "other", "none of these; the description says what"


class Engagement(Word):
    """Who was in control of the robot."""

    AUTONOMOUS = "autonomous", "a policy, nobody helping"
    ASSISTED = "assisted", "a policy, a person stepping in"
    TELEOPERATED = "teleoperated"
    MANUAL = "manual", "moved by hand or pendant"
    MAINTENANCE = "maintenance"
    IDLE = "idle", "powered, nothing asked of it"
    OFF = "off"
    UNKNOWN = "unknown"


class Via(Word):
    """By which door a record came in, and so how far its author is vouched for."""

    WEB = "web", "web page, logged in"
    API = "api", "a program, logged in"
    CLI = "cli", "command line"
    RULE = "rule", "rule"
    IMPORT = "import", "import"


class Status(Word):
    """How far an incident has got."""

    DRAFT = "draft", "drafted by a rule; nobody has looked at it"
    REPORTED = "reported", "not yet reviewed by as many people as it needs"
    CONFIRMED = "confirmed", "reviewed"
    ACTING = "acting", "reviewed, with a corrective action that was not found effective yet"
    CLOSED = "closed", "nothing is left to do"
    DISMISSED = "dismissed", "reviewed and found to be none; it does not count"


class Answer(Word):
    """Answer to a question."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Question(Word):
    """Questions in the manner of OSHA's recording criteria; guidance, see docs/vocabulary.md."""

    WORK_RELATED = "work_related", "Did it arise from work, or at the workplace?"
    MEDICAL_TREATMENT = "medical_treatment", "Was there medical treatment beyond first aid?"
    LOST_CONSCIOUSNESS = "lost_consciousness", "Did somebody lose consciousness?"
    DAYS_AWAY = "days_away", "Was somebody away from work on a later day because of it?"
    RESTRICTED_WORK = (
        "restricted_work",
        "Was somebody's work restricted, or were they moved to other work?",
    )
    SIGNIFICANT_DIAGNOSIS = (
        "significant_diagnosis",
        "Did a physician diagnose a significant injury or illness?",
    )
    HOSPITAL = (
        "hospital",
        "Was somebody admitted to hospital, or was there an amputation or loss of an eye?",
    )
    FATALITY = "fatality", "Did somebody die?"


class BodyRegion(Word):
    """Regions of the body, as ISO/TS 15066 divides it, and what it leaves out."""

    SKULL_FOREHEAD = "skull_forehead", "skull and forehead"
    FACE = "face"
    EYE = "eye"
    NECK = "neck"
    BACK_SHOULDERS = "back_shoulders", "back and shoulders"
    CHEST = "chest"
    ABDOMEN = "abdomen"
    PELVIS = "pelvis"
    UPPER_ARM = "upper_arm", "upper arm and elbow"
    LOWER_ARM = "lower_arm", "lower arm and wrist"
    HAND_FINGERS = "hand_fingers", "hand and fingers"
    THIGH_KNEE = "thigh_knee", "thigh and knee"
    LOWER_LEG = "lower_leg", "lower leg"
    FOOT = "foot", "foot and toes"
    WHOLE_BODY = "whole_body", "several regions, or all of it"
    UNKNOWN = "unknown", "region not known"


class Treatment(Word):
    """What was done for an injured person; the mildest first."""

    NONE = "none"
    FIRST_AID = "first_aid", "first aid"
    MEDICAL = "medical", "medical treatment beyond first aid"
    HOSPITAL = "hospital", "admitted to hospital"
    DEATH = "death", "the person died"
    UNKNOWN = "unknown"


class Contact(Word):
    """How robot and person touched, in the words of ISO/TS 15066."""

    TRANSIENT = "transient", "the body part could move away"
    QUASI_STATIC = "quasi_static", "the body part was clamped"
    NO_CONTACT = "no_contact", "hurt by something else than a touch"
    UNKNOWN = "unknown"


def spoken(word: object) -> str:
    """A word as people read it.

    Example:
        >>> spoken("person_contact")
        'person contact'
    """
    return str(word).replace("_", " ")


SIDES: Final = {"real": "real robot", "twin": "stand-in (twin)", "sim": "simulator"}
"""Sides as people read them."""
