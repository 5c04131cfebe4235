"""Which role may record and see what."""

from __future__ import annotations

from robo_eval.web.errors import ForbiddenError
from robo_eval_incidents.accounts import Role, User
from robo_eval_incidents.kinds import Body
from robo_eval_incidents.state import Incident
from robo_eval_incidents.text import same_person


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
    raise ForbiddenError(f"this needs the role {body.role}; this account is {_roles(user)}")


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


def check_admin(user: User) -> None:
    """Refuse to change accounts for all but admins.

    Raises:
        ForbiddenError: If it is not for this account.
    """
    if not user.may_admin:
        raise ForbiddenError(f"this needs the role admin; this account is {_roles(user)}")


def _roles(user: User) -> str:
    return " and ".join(role.value for role in Role if role in user.roles)
