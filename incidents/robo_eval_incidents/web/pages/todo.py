"""What is left to do: a line for every incident that is not settled, what is overdue first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from robo_eval.core.errors import InputError
from robo_eval.web.templating import render
from robo_eval_incidents.clocks import Deadline, due
from robo_eval_incidents.lists import Todo, todo
from robo_eval_incidents.record import now
from robo_eval_incidents.text import LATEST_NS, name_of
from robo_eval_incidents.web.deps import Person, Site, ThisSite

router: Final = APIRouter(include_in_schema=False)
_ROWS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the page was asked for.

    Attributes:
        robot: Robot; empty for all.
        owner: Who sees to a corrective action; empty for everybody, and for all that is left.
        overdue: Whether only for what is overdue.
    """

    robot: str
    owner: str
    overdue: bool

    @property
    def is_filtered(self) -> bool:
        """Whether something may be left out."""
        return bool(self.robot or self.owner or self.overdue)

    def link(self, after: int) -> str:
        """The address of the lines after so many."""
        given = {"robot": self.robot, "owner": self.owner, "overdue": "yes" * self.overdue}
        named = {name: value for name, value in given.items() if value}
        return f"/todo?{urlencode({**named, 'after': after})}"


@router.get("/todo")
def show_todo(
    request: Request,
    site: ThisSite,
    session: Person,
    robot: str = "",
    owner: str = "",
    overdue: str = "",
    after: Annotated[int, Query(ge=0, le=LATEST_NS)] = 0,
) -> HTMLResponse:
    """What is left to do, overdue first, then the worst, then the oldest."""
    asked = Asked(robot=robot.strip(), owner=owner.strip(), overdue=bool(overdue))
    problem, status, found = "", 200, Todo([], 0)
    clocks: list[Deadline] = []
    now_ns = now().time_ns
    try:
        found = _found(site, asked, after)
        if not (asked.owner or after):
            clocks = due(site.log, robot=asked.robot or None)
            clocks = [one for one in clocks if not asked.overdue or one.is_late(now_ns)]
    except InputError as err:
        problem, status = str(err), err.http_status
    end = after + len(found.rows)
    return render(
        request,
        "todo.html.j2",
        session,
        status=status,
        asked=asked,
        problem=problem,
        robots=site.robots(),
        rows=found.rows,
        clocks=clocks,
        now_ns=now_ns,
        count=found.count,
        more=asked.link(end) if end < found.count else None,
    )


def _found(site: Site, asked: Asked, after: int) -> Todo:
    return todo(
        site.log,
        robot=asked.robot or None,
        owner=name_of(asked.owner, "owner") if asked.owner else None,
        overdue=asked.overdue,
        after=after,
        limit=_ROWS,
    )
