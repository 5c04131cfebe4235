"""`robo-eval calibrate offsets`: zeros of joints, a camera on a hand, clocks of machines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from robo_eval.cli.output import JsonOption, measured, print_json, print_table, say
from robo_eval.core.errors import CheckFailedError
from robo_eval.core.plain import plain
from robo_eval.core.wording import noun_for, shown

if TYPE_CHECKING:
    from robo_eval_calibration.offsets import Offset

app = typer.Typer(no_args_is_help=True, help="Find offsets of joints, of a camera, of clocks.")
FileArgument = Annotated[Path, typer.Argument(metavar="FILE.csv", help="Table of readings.")]


@app.command("joints", short_help="Zero offsets of joints.")
def joints(file: FileArgument, *, json: JsonOption = False) -> None:
    """Say how far the zero of each joint is off.

    Columns: `joint`, `reference_deg` (where it was, by a gauge or a fixture) and `measured_deg`
    (what its encoder said); also in rad, m, cm or mm. Exit code 1 if a joint has no offset that can
    be used.

    Example: robo-eval calibrate offsets joints zeros.csv
    """
    from robo_eval_calibration.offsets import joint_offsets

    _tell(file, joint_offsets(file), json=json)


@app.command("hand-eye", short_help="Where a camera is on the hand, or beside the robot.")
def hand_eye(
    file: FileArgument,
    *,
    fixed: Annotated[
        bool, typer.Option("--fixed", help="The camera stands still and the target is on the hand.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Find the pose of a camera from poses of the hand and of a target at the same moments.

    A line a station: `hand_x_m`, `hand_y_m`, `hand_z_m`, `hand_qx`, `hand_qy`, `hand_qz`, `hand_qw`
    of the hand in the base, and `target_...` of the target in the camera. In place of quaternions
    rotation vectors will do: `target_rx_rad`, `target_ry_rad`, `target_rz_rad`, or in deg.
    Exit code 1 if no pose can be used.

    Example: robo-eval calibrate offsets hand-eye stations.csv
    """
    from robo_eval_calibration.hand_eye import hand_eye as found_in

    _tell(file, [found_in(file, fixed=fixed)], json=json)


@app.command("clock", short_help="Offset and drift between the clocks of two machines.")
def clock(file: FileArgument, *, json: JsonOption = False) -> None:
    """Say how far the clock of machine b is ahead of that of a, and how it drifts.

    A line a round trip: `a_send_ns`, `b_receive_ns`, `b_send_ns`, `a_receive_ns`; a asks, b
    answers; also in us, ms or s. Exit code 1 if no offset can be used.

    Example: robo-eval calibrate offsets clock pings.csv
    """
    from robo_eval_calibration.offsets import clock_offset

    _tell(file, [clock_offset(file)], json=json, title="offset of clocks, with its bounds")


def _tell(
    file: Path,
    found: Sequence[Offset],
    *,
    json: bool,
    title: str = "offsets, with 95 % intervals",
) -> None:
    """Print what was found.

    Raises:
        CheckFailedError: If something was found that cannot be used, or nothing.
    """
    if json:
        print_json({"offsets": plain(found)})
    else:
        _print(found, title)
    useless = [f"{one.of}: {one.verdict}" for one in found if not one.is_usable]
    if useless:
        raise CheckFailedError(f"{file}: no offset to use: {'; '.join(useless)}")


def _print(found: Sequence[Offset], title: str) -> None:
    print_table(
        title,
        ("of", "", "value", "unit", "verdict"),
        [
            (one.of, name.rpartition("_")[0] or name, measured(number), number.unit, one.says(name))
            for one in found
            for name, number in one.numbers.items()
        ],
        right=(2,),
    )
    for one in found:
        left = [f"{name.replace('_', ' ')} {shown(x)}" for name, x in one.residuals.items()]
        if one.lines:
            lines = ", ".join(map(str, one.lines))
            left.append(f"look at {noun_for(len(one.lines), 'line')} {lines}")
        if left:
            say(f"{one.of}: {'; '.join(left)}")
        if one.reason:
            say(f"{one.of}: {one.reason}")
