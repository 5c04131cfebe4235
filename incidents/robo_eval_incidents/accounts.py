"""Who may use the web page of the incident log, and in which role."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from robo_eval.web import accounts
from robo_eval_incidents.database import IncidentLogError
from robo_eval_incidents.kinds import Account, Refusal
from robo_eval_incidents.log import IncidentLog
from robo_eval_incidents.text import name_of
from robo_eval_incidents.words import Via


class Role(StrEnum):
    """What an account is for."""

    OPERATOR = "operator"
    """Reports, corrects own reports, attaches evidence, reports shifts without incidents."""
    REVIEWER = "reviewer"
    """Does what operators do, reviews, reclassifies, sees to corrective actions, closes."""
    AUDITOR = "auditor"
    """Reads everything, who looked at critical incidents included, and changes nothing."""
    ADMIN = "admin"
    """Makes and closes accounts, gives them roles and passwords; judges and reports nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class User(accounts.User):
    """An account; records of it carry its name."""

    @property
    def may_report(self) -> bool:
        """Whether it may report, correct its own reports, and attach evidence."""
        return bool(self.roles & {Role.OPERATOR, Role.REVIEWER})

    @property
    def may_review(self) -> bool:
        """Whether it may judge incidents."""
        return Role.REVIEWER in self.roles

    @property
    def may_audit(self) -> bool:
        """Whether it may see accounts and views, and verify the log."""
        return Role.AUDITOR in self.roles

    @property
    def may_admin(self) -> bool:
        """Whether it may make and change accounts."""
        return Role.ADMIN in self.roles

    @property
    def may_export(self) -> bool:
        """Whether it may take lists out of the log."""
        return self.may_review or self.may_audit


class Accounts(accounts.Accounts[User]):
    """The accounts of a log.

    Args:
        log: The log; changes of accounts are records of it.
        floor_s: How long a refused login takes at least.

    Raises:
        MissingExtraError: If passwords cannot be hashed.
    """

    kind = User
    roles = Role
    verbs = "robo-eval incidents user"

    def __init__(self, log: IncidentLog, *, floor_s: float = accounts.FLOOR_S) -> None:
        super().__init__(log.database, floor_s=floor_s)
        self._log = log

    def check_name(self, name: str) -> str:
        """The name as records carry it."""
        return name_of(name, "name")

    def note_change(self, name: str, roles: Sequence[str], by: str, via: str) -> None:
        """Record it: no account can do what the chain does not know of."""
        ordered: Any = tuple(roles)
        self._log.file(Account(user=name, roles=ordered), by=by, via=Via(via))

    def note_refused(self, user: str | None, attempts: int, since_ns: int) -> None:
        """Record them; whether the log can be written does not decide who may read it."""
        with suppress(IncidentLogError):
            body = Refusal(user=user, attempts=attempts, since_ns=since_ns)
            self._log.file(body, by="robo-eval", via=Via.RULE)
