"""The page of a run of AGITB: one HTML file that needs nothing but itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from robo_eval.analysis.agitb import Testbed, Tested
from robo_eval.analysis.agitb.axioms import Failure
from robo_eval.analysis.agitb.streams import WIDTH
from robo_eval.analysis.agitb.testbed import TESTS
from robo_eval.log.files import write_atomically
from robo_eval.page.figure import Figure, scatter
from robo_eval.page.figures import Forms, both_forms, finish, legend_on_top
from robo_eval.page.render import render_page
from robo_eval.page.theme import MUTED, POLICY

DEMANDS: Final = {
    test.number: (test.trial.__doc__ or "").partition("\n")[0]
    if test.trial is not None
    else "No fair target is known."
    for test in TESTS
}
"""What each test asks, in a sentence."""
OTHERWISE: Final = (
    "Its test 12 never ends on 64-bit Linux, because the chunk it times stays empty.",
    "The number it prints for a trial that fails does not replay that trial.",
    "Its test 11 always passes.",
)
"""What the reference program does otherwise."""


def write_page(found: Testbed, path: Path, facts: list[tuple[str, str]]) -> None:
    """Write the page of a run; it is there complete, or not at all.

    Args:
        found: What came of it.
        path: The file.
        facts: What else is to be known of the run, by name.

    Raises:
        TrialDirectoryError: If it cannot be written; nothing was changed then.
    """
    write_atomically(path, render(found, facts).encode())


def render(found: Testbed, facts: list[tuple[str, str]]) -> str:
    """The page as text; see `write_page`."""
    tests = [*([] if found.integrity is None else [found.integrity]), *found.tests]
    charts: dict[str, Forms] = {
        f"raster-{one.test}": both_forms(partial(_raster, one.failure))
        for one in tests
        if one.failure is not None and any((*one.failure.inputs, *one.failure.predictions))
    }
    timed = next((one for one in tests if one.seen.times_us), None)
    if timed is not None:
        charts["times"] = both_forms(partial(_times, timed))
    return render_page(
        "agitb.html.j2",
        charts,
        found=found,
        tests=tests,
        rasters=list(charts),
        demands=DEMANDS,
        otherwise=OTHERWISE,
        facts=facts,
    )


def _raster(failure: Failure, *, narrow: bool) -> Figure:
    """Inputs as squares, and around them what had been predicted, bit by bit."""
    parts = (
        ("set", failure.inputs, 0, {"symbol": "square", "color": POLICY[0]}),
        ("predicted", failure.predictions, 1,
         {"symbol": "circle-open", "color": POLICY[1], "line": {"width": 2}}),
    )  # fmt: skip
    size = 6 if narrow else 11
    figure = Figure()
    for name, numbers, later, marker in parts:
        bits = [
            (place + 1 + later, bit)
            for place, number in enumerate(numbers)
            for bit in range(WIDTH)
            if number >> bit & 1
        ]
        figure.add_trace(
            scatter(
                x=[place for place, _ in bits], y=[bit for _, bit in bits], mode="markers",
                name=name, marker={"size": size + 3 * later, **marker},
                hovertemplate=f"input %{{x}}, bit %{{y}}: {name}<extra></extra>",
            )
        )  # fmt: skip
    count = len(failure.inputs)
    figure.update_xaxes(title="input", range=[0.3, count + 1.7], dtick=1 if count < 16 else None)
    figure.update_yaxes(title="bit", range=[-0.7, WIDTH - 0.3], dtick=1)
    return legend_on_top(finish(figure, height=300), rows=1)


def _times(tested: Tested, *, narrow: bool) -> Figure:
    """What each chunk of each stream took, from the first to the last."""
    figure = Figure()
    styles = {"random inputs": POLICY[0], "nearly nothing": POLICY[1]}
    for name, times in tested.seen.times_us.items():
        is_motif = name not in styles
        figure.add_trace(
            scatter(
                x=list(range(1, len(times) + 1)), y=times, mode="lines",
                name="motifs" if is_motif else name, legendgroup="motifs" if is_motif else name,
                showlegend=not is_motif or "motifs" not in [one["name"] for one in figure.data],
                line={"color": styles.get(name, MUTED), "width": 1 if is_motif else 2},
                hovertemplate=f"{name}, chunk %{{x}}: %{{y}} µs<extra></extra>",
            )
        )  # fmt: skip
    figure.update_xaxes(title="chunk")
    figure.update_yaxes(title="µs", rangemode="tozero")
    return legend_on_top(finish(figure, height=260 if narrow else 320), rows=1)
