"""Capability and generality as a report shows them: the analysis, named, with what to mind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from robo_eval.analysis import panel
from robo_eval.analysis.acc import AccTable, isometrics
from robo_eval.metrics.summary import TrialSummary
from robo_eval.page.agent_curves import AgentCurve
from robo_eval.page.words import count, listed, number, sentence
from robo_eval.report.model import Characteristic, Result

_MEMBER: Final = "a member of the panel)"
"""How an entry of `AccTable.left_out` ends that `panel_members` holds as well."""


def characteristic_of(
    summary: TrialSummary, name_of: Callable[[str, str], str], results: Sequence[Result]
) -> tuple[Characteristic | None, str]:
    """The section on capability and generality, or None and the reason why there is none.

    Args:
        summary: Metrics and analyses of the trial.
        name_of: Name shown of a policy, from its side and its own name.
        results: The policies in the plan's order.
    """
    acc = summary.acc
    if not isinstance(acc, AccTable):
        return None, "Not asked for."
    if not acc.rows or acc.h0 is None or acc.q is None or not acc.h0 < acc.q:
        return None, _why_no_curves(acc, results)
    by_name = {name_of(row.side, row.policy): row for row in acc.rows}
    order = [result.policy for result in results if result.policy in by_name]
    curves = [
        AgentCurve.of(name, row, flag=_note(row.flag, row.unreliable))
        for name, row in ((name, by_name[name]) for name in order)
    ]
    warnings = list(dict.fromkeys(row.unreliable for row in acc.rows if row.unreliable))
    text = [sentence(warning) for warning in warnings]
    text += acc.warnings
    text += [_member_text(policy, member) for policy, member in acc.panel_members.items()]
    text += _others_left_out(acc)
    maximum = acc.attainable_maximum
    shown = Characteristic(
        curves=curves,
        isometrics=isometrics(acc.h0, acc.q),
        source=_panel_source(),
        axis=(
            f"{count(acc.n_items, 'item')} of {count(acc.n_levels, 'difficulty', 'difficulties')}"
            f" from {number(acc.h0)} to {number(acc.q)}"
            + (f"; the best generality such items can show is {number(maximum)}" if maximum else "")
        ),
        warnings=text,
    )
    return shown, ""


def _member_text(policy: str, member: str) -> str:
    return (
        f"{policy} has no curve: it is {member}, one of the"
        f" {count(len(panel.members()), 'reference controller')} whose performance sets the"
        " difficulties, and would be measured by itself."
    )


def _why_no_curves(acc: AccTable, results: Sequence[Result]) -> str:
    played = [result.policy for result in results if result.numbers.coverage.scored]
    if not played:
        return "Not defined yet: no episode has a score."
    members = acc.panel_members
    reasons = [_member_text(policy, member) for policy, member in members.items()]
    if len(members) < len({result.numbers.policy for result in results}):
        equal = (
            "a curve needs items of at least two difficulties, and all that were played are"
            " equally hard"
        )
        reasons.insert(0, f"Not defined for this trial: {acc.reason or equal}.")
    return " ".join([*reasons, *_others_left_out(acc)])


def _others_left_out(acc: AccTable) -> list[str]:
    """Conditions and tasks that are on no curve, and why, as a sentence; empty without any."""
    others = [item for item in acc.left_out if not item.endswith(_MEMBER)]
    return [f"Not on the curves: {listed(others)}."] if others else []


def _note(flag: str | None, unreliable: str | None) -> str | None:
    parts = [flag.replace("_", " ") if flag else "", "unreliable" if unreliable else ""]
    return ", ".join(part for part in parts if part) or None


def _panel_source() -> str:
    """Where the difficulties of the items come from."""
    return (
        "The difficulty of an item, a level at a difficulty, is one minus the mean performance of"
        f" a frozen panel of {count(len(panel.members()), 'reference controller')}. The policies"
        " drawn here have no part in it."
    )
