"""`robo-eval incidents list` and `show`: the incidents there are, and all that is known of one."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from robo_eval.cli.incidents_common import (
    LogOption,
    NameArgument,
    PlaceArgument,
    SinceOption,
    UntilOption,
    checked,
    named_log,
    period_of,
    say_open,
    when,
)
from robo_eval.cli.incidents_fields import Given, option
from robo_eval.cli.options import extended
from robo_eval.cli.output import JsonOption, print_json, print_table, say
from robo_eval.core.names import listing, unknown_name
from robo_eval_incidents.kinds import Report
from robo_eval_incidents.text import name_of
from robo_eval_incidents.words import Status

if TYPE_CHECKING:
    from robo_eval_incidents.lists import Filter, Page
    from robo_eval_incidents.rows import Listed
    from robo_eval_incidents.state import Incident

_FILTER: Final = {
    **{
        name: option(Report, name, None, is_list=True)
        for name in ("robot", "side", "severity", "category")
    },
    "episode_id": option(Report, "episode_id", None),
    "status": (
        Annotated[
            list[str] | None,
            typer.Option("--status", metavar="TEXT", help=f"How far: {listing(tuple(Status))}."),
        ],
        None,
    ),
    "text": (
        Annotated[
            str | None, typer.Option("--text", metavar="TEXT", help="Part of what happened.")
        ],
        None,
    ),
    "since": (SinceOption, None),
    "until": (UntilOption, None),
}


def filtered(run: Callable[..., None]) -> Callable[..., None]:
    """Make a command of what takes a filter: options say which incidents are meant.

    What is decorated takes first what they said; see `filter_of`.
    """

    def call(**given: Any) -> None:
        run({name: given.pop(name) for name in _FILTER}, **given)

    return extended(run, call, 1, _FILTER)


def filter_of(given: Given) -> Filter:
    """Which incidents are asked for.

    Raises:
        InputError: If a word is none of its list, or a time is none.
    """
    from robo_eval_incidents.lists import WORDS, Filter

    start, end = period_of(given["since"], given["until"])
    text = given["text"]
    return Filter(
        robot=tuple(given["robot"]) if given["robot"] else None,
        **{name: _words(one, name, given[name]) for name, one in WORDS.items()},
        text=None if text is None else name_of(text, "--text"),
        episode_id=given["episode_id"],
        since_ns=start,
        until_ns=end,
    )


def _words(words: type[StrEnum], name: str, given: list[str] | None) -> Any:
    for one in given or ():
        if one not in set(words):
            raise unknown_name(name, one, words)
    return tuple(map(words, given)) if given else None


@filtered
def list_(
    given: Given,
    *,
    place: PlaceArgument = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many.")] = 20,
    after: Annotated[
        str | None, typer.Option("--after", help="`next` of the list before, for older ones.")
    ] = None,
    log: LogOption = None,
    json: JsonOption = False,
) -> None:
    """List incidents as they stand, newest first; of an option that is repeated each word will do.

    Examples: robo-eval incidents list; robo-eval incidents list --severity critical --since -30d
    """
    from robo_eval_incidents.lists import check_robot, list_incidents, row_dict, utc_today

    wanted = filter_of(given)
    with checked(named_log(place, log)) as found:
        check_robot(found, *given["robot"] or ())
        page = list_incidents(found, wanted, after=after, limit=limit)
        if json:
            today = utc_today()
            listed = [row_dict(one, today) for one in page.rows]
            print_json({"log": found.name, "incidents": listed, "next": page.next})
        else:
            _print_page(found.name, page)


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
                when(row.happened_ns, row.until_ns),
                row.robot,
                row.side,
                _severity(row),
                row.category,
                row.status,
                " ".join(row.description.split()),
            )
            for row in page.rows
        ],
        prose=(7,),
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
    with checked(log) as found:
        shown = found.incident(incident)
        if json:
            from robo_eval_incidents.tables import Whole

            print_json(Whole.of(shown, views=True).model_dump(mode="json"))
        else:
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
        prose=(3,),
    )
