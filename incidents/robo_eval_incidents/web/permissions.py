"""Which role may record and see what."""

from __future__ import annotations

from typing import Final

from robo_eval.core.errors import InputError
from robo_eval_incidents.accounts import Role, User
from robo_eval_incidents.kinds import Attachment, Body, Correction, Nil, Report
from robo_eval_incidents.state import Incident
from robo_eval_incidents.text import same_person


class ForbiddenError(InputError):
    """The account's roles do not include this; nothing was changed."""


OPERATOR_RECORDS: Final = (Report, Nil, Correction, Attachment)
"""What operators record; corrections and evidence only of what they reported themselves."""


def may_record(user: User, body: type[Body], incident: Incident | None = None) -> bool:
    """Whether somebody may record such a thing.

    Args:
        user: Who.
        body: What kind of record.
        incident: Incident it is about, if it is about one.
    """
    if user.may_review:
        return True
    if not user.may_report or body not in OPERATOR_RECORDS:
        return False
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
    if user.may_report and body in OPERATOR_RECORDS:
        raise ForbiddenError(
            "operators correct what they reported themselves; ask a reviewer to do it"
        )
    wanted = Role.OPERATOR if body in OPERATOR_RECORDS else Role.REVIEWER
    raise ForbiddenError(f"this needs the role {wanted.value}; this account is {_roles(user)}")


def check_export(user: User) -> None:
    """Refuse to hand out lists to operators.

    Raises:
        ForbiddenError: If it is not for this account.
    """
    if not user.may_export:
        raise ForbiddenError(
            f"lists are for reviewers and auditors; this account is {_roles(user)}"
        )


def check_verify(user: User) -> None:
    """Refuse to run a verification for operators.

    Raises:
        ForbiddenError: If it is not for this account.
    """
    if not user.may_export:
        raise ForbiddenError(
            f"verification is for reviewers and auditors; this account is {_roles(user)}"
        )


def check_audit(user: User) -> None:
    """Refuse to show who looked at what to all but auditors.

    Raises:
        ForbiddenError: If it is not for this account.
    """
    if not user.may_audit:
        raise ForbiddenError(f"this needs the role auditor; this account is {_roles(user)}")


def _roles(user: User) -> str:
    return " and ".join(role.value for role in Role if role in user.roles)
