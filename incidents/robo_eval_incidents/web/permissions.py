"""Which role may record and see what."""

from __future__ import annotations

from typing import Final, Literal

from robo_eval.web.errors import ForbiddenError
from robo_eval_incidents.accounts import Role, User
from robo_eval_incidents.kinds import Body
from robo_eval_incidents.state import Incident
from robo_eval_incidents.text import same_person

Right = Literal["export", "verify", "audit", "admin"]
"""What somebody may do beside recording: take lists out, verify, see who looked at what, and change
accounts."""
_FOR: Final[dict[Right, str]] = {
    "export": "lists are for reviewers and auditors",
    "verify": "verification is for reviewers and auditors",
    "audit": "this needs the role auditor",
    "admin": "this needs the role admin",
}


def may_record(user: User, body: type[Body], incident: Incident | None = None) -> bool:
    """Whether somebody may record such a thing.

    Args:
        user: Who.
        body: What kind of record.
        incident: Incident it is about, if it is about one.
    """
    if user.may_review:
        return body.role is not None
    if not user.may_report or body.role != Role.OPERATOR.value:
        return False
    # Operators correct, and add evidence to, what they reported themselves.
    return incident is None or is_own(user, incident)


def is_own(user: User, incident: Incident) -> bool:
    """Whether somebody reported an incident themselves."""
    by_rule = incident.report.rule is not None
    return not by_rule and same_person(incident.record.by, user.name)


def check_record(user: User, body: type[Body], incident: Incident | None = None) -> None:
    """Refuse what `may_record` says no to.

    Raises:
        ForbiddenError: If it is not for this account.
    """
    if may_record(user, body, incident):
        return
    if user.may_report and body.role == Role.OPERATOR.value:
        raise ForbiddenError(
            "operators correct what they reported themselves; ask a reviewer to do it"
        )
    raise _forbidden(f"this needs the role {body.role}", user)


def check_may(user: User, what: Right) -> None:
    """Refuse what is for other roles.

    Raises:
        ForbiddenError: If it is not for this account.
    """
    may = {"export": user.may_export, "verify": user.may_export,
           "audit": user.may_audit, "admin": user.may_admin}  # fmt: skip
    if not may[what]:
        raise _forbidden(_FOR[what], user)


def _forbidden(whom: str, user: User) -> ForbiddenError:
    roles = " and ".join(role.value for role in Role if role in user.roles)
    return ForbiddenError(f"{whom}; this account is {roles}")
