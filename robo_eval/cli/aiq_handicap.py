"""`robo-eval aiq handicap`: what networks cover of the space of a study as their nodes leave."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.aiq_progress import progress
from robo_eval.cli.output import JsonOption, RayOption, WorkersOption, print_json, print_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from robo_eval.study.handicapping import Curve, Handicapped


def handicap(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder of a study.")],
    *,
    layers: Annotated[int, typer.Option(metavar="N", help="Networks of 1 to N hidden layers.")] = 5,
    units: Annotated[int, typer.Option(metavar="N", help="Units of each hidden layer.")] = 32,
    steps: Annotated[
        int, typer.Option(metavar="N", help="Steps from the whole network to one unit a layer.")
    ] = 9,
    trainings: Annotated[int, typer.Option(metavar="N", help="Trainings of each network.")] = 3,
    workers: WorkersOption = None,
    ray: RayOption = None,
    json: JsonOption = False,
) -> None:
    """Train networks on each test, take their nodes away step by step, and print what is left.

    A measure of what an agent is able to do should fall evenly with its nodes: for mean performance
    and AIQ the table says what share of their change a line and a parabola explain. Results are
    kept with those of the study; the same command goes on where it was stopped.

    Example: robo-eval aiq handicap runs/study
    """
    from robo_eval.log.provenance import cores
    from robo_eval.study.handicapping import Plan, handicapped
    from robo_eval.study.run import Study

    plan = Plan(layers=layers, units=units, steps=steps, trainings=trainings)
    with progress("handicap", quiet=json) as told:
        found = handicapped(
            Study.open(study),
            plan,
            workers=cores() if workers is None else workers,
            ray=ray,
            progress=told,
        )
    if json:
        print_json(found.as_dict())
    else:
        _print(found)


def _print(found: Handicapped) -> None:
    rows = [
        (
            curve.layers if step == 0 else "",
            int(nodes),
            _spread(curve.means[:, step]),
            _spread(curve.aiqs[:, step]),
        )
        for curve in found.curves
        for step, nodes in enumerate(curve.nodes)
    ]
    trainings = len(found.curves[0].means)
    of = f"of {trainings} trainings [lowest, highest]" if trainings > 1 else "of one training"
    title = f"{found.name}: performance and AIQ in {found.k} dimensions, {of}"
    print_table(title, ("layers", "nodes", "mean", "AIQ"), rows, right=(0, 1))
    columns = (
        "layers", "mean: line", "parabola", "rank", "AIQ: line", "parabola", "rank",
    )  # fmt: skip
    explained = [(curve.layers, *_explained(curve)) for curve in found.curves]
    steps = len(found.curves[0].nodes)
    title = f"explained by nodes (R squared), and rank correlation (Spearman), n = {steps}"
    print_table(title, columns, explained, right=range(len(columns)))


def _spread(values: NDArray) -> str:  # type: ignore[type-arg]
    spread = f" [{values.min():.3f}, {values.max():.3f}]" if len(values) > 1 else ""
    return f"{values.mean():.3f}{spread}"


def _explained(curve: Curve) -> list[str]:
    found = []
    for values in (curve.means, curve.aiqs):
        own = curve.fits_of(values)
        found += [own.linear, own.quadratic, curve.fall_of(values)]
    return ["none" if math.isnan(one) else f"{one:.2f}" for one in found]
