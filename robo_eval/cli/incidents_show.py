"""`robo-eval incidents list` and `show`: the incidents there are, and all that is known of one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.incidents_common import (
    CategoryOption,
    EpisodeOption,
    LogOption,
    NameArgument,
    RobotOption,
    SeverityOption,
    SideOption,
    SinceOption,
    UntilOption,
    period_of,
    readable,
    say_open,
    when,
)
from robo_eval.cli.output import JsonOption, print_json, print_table, say

if TYPE_CHECKING:
    from enum import StrEnum
    from typing import TypeVar

    from robo_eval_incidents.lists import Filter, Listed, Page
    from robo_eval_incidents.state import Incident

    _Word = TypeVar("_Word", bound=StrEnum)

StatusOption = Annotated[
    str | None,
    typer.Option("--status", help="draft, reported, confirmed, acting, closed or dismissed."),
]
TextOption = Annotated[
    str | None, typer.Option("--text", metavar="TEXT", help="Part of what happened.")
]


def filter_of(
    *,
    robot: str | None = None,
    side: str | None = None,
    severity: str | None = None,
    category: str | None = None,
    status: str | None = None,
    text: str | None = None,
    episode: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Filter:
    """Which incidents are asked for.

    Raises:
        InputError: If a word is none of its list, or a time is none.
    """
    from robo_eval.core.kinds import Side
    from robo_eval_incidents.lists import Filter
    from robo_eval_incidents.text import name_of
    from robo_eval_incidents.words import Category, Severity, Status

    start, end = period_of(since, until)
    return Filter(
        robot=robot,
        side=_word(Side, "side", side),
        severity=_word(Severity, "severity", severity),
        category=_word(Category, "category", category),
        status=_word(Status, "status", status),
        text=None if text is None else name_of(text, "--text"),
        episode_id=episode,
        since_ns=start,
        until_ns=end,
    )


def _word(words: type[_Word], name: str, given: str | None) -> _Word | None:
    from robo_eval.core.names import unknown_name

    if given is None:
        return None
    if given not in set(words):
        raise unknown_name(name, given, words)
    return words(given)


def list_(
    *,
    robot: RobotOption = None,
    side: SideOption = None,
    severity: SeverityOption = None,
    category: CategoryOption = None,
    status: StatusOption = None,
    text: TextOption = None,
    episode: EpisodeOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many.")] = 20,
    after: Annotated[
        str | None, typer.Option("--after", help="`next` of the list before, for older ones.")
    ] = None,
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """List incidents as they stand, newest first.

    Examples: robo-eval incidents list; robo-eval incidents list --severity critical --since -30d
    """
    from robo_eval.core.names import unknown_name
    from robo_eval_incidents.lists import list_incidents, robots, row_dict, utc_today

    wanted = filter_of(
        robot=robot,
        side=side,
        severity=severity,
        category=category,
        status=status,
        text=text,
        episode=episode,
        since=since,
        until=until,
    )
    with readable(log) as found:
        if robot is not None and robot not in (known := robots(found)):
            raise unknown_name("robot", robot, known)
        page = list_incidents(found, wanted, after=after, limit=limit)
        name = found.name
    if json:
        today = utc_today()
        listed = [row_dict(one, today) for one in page.rows]
        print_json({"log": name, "incidents": listed, "next": page.next})
        return
    _print_page(name, page)


def _print_page(name: str, page: Page) -> None:
    if not page.rows:
        say(f"{name}: no such incident")
        return
    print_table(
        name,
        ("incident", "when", "robot", "side", "severity", "category", "status", "what"),
        [
            (
                row.name,
                when(row.happened_ns),
                row.robot,
                row.side,
                _severity(row),
                row.category,
                row.status,
                " ".join(row.description.split()),
            )
            for row in page.rows
        ],
    )
    if page.next is not None:
        say(f"there are older ones: --after {page.next}")


def _severity(row: Listed) -> str:
    if row.counted_severity is row.severity:
        return row.severity
    return f"{row.severity} (counts as {row.counted_severity})"


# One incident ----------------------------------------------------------------------------------


def show(incident: NameArgument, *, log: LogOption = None, json: JsonOption = False) -> None:
    """Print an incident as it stands, and every record about it.

    Example: robo-eval incidents show lab/2
    """
    with readable(log) as found:
        shown = found.incident(incident)
    if json:
        from robo_eval_incidents.tables import Whole

        print_json(Whole.of(shown, views=True).model_dump(mode="json"))
        return
    _print_incident(shown)


def _print_incident(incident: Incident) -> None:
    from robo_eval_incidents.facts import of_incident

    report = incident.report
    say(f"{incident.name}: {incident.severity}, {incident.category}, {incident.status}")
    if incident.counted_severity is not incident.severity:
        say(f"  counts as {incident.counted_severity} until it is reviewed")
    for line in report.description.splitlines():
        say(f"  {line}")
    for fact in of_incident(incident):
        say(f"  {fact.label}: {fact.text}")
    for number, measure in enumerate(incident.measures.values(), start=1):
        state = {None: "not checked", True: "effective", False: "not effective"}
        due = f", due {measure.action.due}" if measure.action.due else ""
        what = " ".join(measure.action.what.split())
        say(f"  action {number}: {what} ({measure.action.owner}{due}): "
            + state[measure.is_effective])  # fmt: skip
    say_open(incident)
    _print_records(incident)


def _print_records(incident: Incident) -> None:
    from robo_eval_incidents.facts import history

    print_table(
        f"records of {incident.incident_id}",
        ("record", "when", "by", "what it said"),
        [
            (
                f"{step.record.station}/{step.record.sequence}",
                when(step.record.at.time_ns),
                f"{step.record.by} ({step.record.via})",
                "\n".join(step.lines()),
            )
            for step in history(incident, views=True)
        ],
        whole=(2, 3),
    )
