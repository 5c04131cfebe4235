"""`robo-eval calibrate`: what recordings say of a simulator, found, validated and exported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from robo_eval.cli.aiq_progress import duration, progress
from robo_eval.cli.calibrate_offsets import app as offsets
from robo_eval.cli.calibrate_watch import watch
from robo_eval.cli.checks import check_names
from robo_eval.cli.options import taking
from robo_eval.cli.output import (
    JsonOption,
    RayOption,
    TaskOption,
    WorkersOption,
    check_own,
    next_steps,
    print_json,
    print_table,
    quoted,
    say,
)
from robo_eval.cli.run import PlayOptions
from robo_eval.core.defaults import HOLD_OUT
from robo_eval.core.errors import CheckFailedError, InputError
from robo_eval.core.plain import plain
from robo_eval.core.task import TaskSpec
from robo_eval.core.wording import counted
from robo_eval.log.directory import CALIBRATION, TrialDirectory
from robo_eval.log.files import write_atomically

if TYPE_CHECKING:
    from robo_eval.log.snapshot import Accepted, Snapshot
    from robo_eval_calibration.checkup import Checkup
    from robo_eval_calibration.recordings import Gathered, Recording

app = typer.Typer(no_args_is_help=True)

TrialArgument = Annotated[Path, typer.Argument(metavar="TRIAL", help="Trial directory.")]
SnapshotArgument = Annotated[
    Path, typer.Argument(metavar="SNAPSHOT.yaml", help="Calibration snapshot.")
]
GivenOption = Annotated[
    list[str] | None,
    typer.Option(
        "--given", metavar="NAME=VALUE", help="A constant that is known, such as one weighed."
    ),
]
_CPU_S_A_RECORDING: Final = {"steps": 1.5, "whole": 12.0}
"""Of a fit on one core: of a gantry nearly the same for short ones and long ones, of an arm for 60
ticks."""
app.command("watch", short_help="Say which constants changed over days, and since when.")(watch)
app.add_typer(offsets, name="offsets")


@app.command("check", short_help="Say what the recordings of a trial can tell.")
def check(
    trial: TrialArgument,
    *,
    given: GivenOption = None,
    task: TaskOption = "",
    plan: Annotated[
        Path | None,
        typer.Option("--next", metavar="PLAN.yaml", help="Write what to record next as a plan."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check recordings before anything is fitted, and say which constants they can tell.

    Clocks, units, order of joints, gaps and excitation are looked at first; then the simulator
    foretells how well each constant of the task will be known. The result is kept in the trial,
    calibration/check.json. Exit code 1 if nothing can be found from these recordings.

    Example: robo-eval calibrate check runs/gantry
    """
    from robo_eval_calibration.checkup import keep, passed
    from robo_eval_calibration.motions import check_plan

    if plan is not None:
        check_own(plan, "plan of what to record next", "--next", check_plan)
    opened = TrialDirectory.open(trial)
    gathered = _gathered(opened, task, quiet=json)
    known = _given(given, gathered.task)
    found = _checked(gathered, known, quiet=json)
    keep(opened, found)
    if plan is not None and found.motion is not None:
        write_atomically(plan, found.motion.plan.encode())
    elif plan is not None:
        typer.echo(f"{plan}: was not written: no motion is known that tells more", err=True)
    if json:
        print_json(plain(found))
    else:
        _print_check(found)
    passed(found)
    if not json:
        flags = [f"--given {quoted(one)}" for one in given or []]
        flags += [f"--task {quoted(task)}"] if task else []
        next_steps(
            " ".join([f"robo-eval calibrate fit {quoted(trial)} --out calibration.yaml", *flags])
        )


@app.command("fit", short_help="Find the constants of the simulator.")
def fit(
    trial: TrialArgument,
    *,
    out: Annotated[Path, typer.Option(metavar="SNAPSHOT.yaml", help="Snapshot to write.")],
    hold_out: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the recordings kept to validate it.")
    ] = HOLD_OUT,
    name: Annotated[
        str, typer.Option(metavar="NAME", help="What rows call it; default that of the file.")
    ] = "",
    valid_days: Annotated[
        int, typer.Option(min=1, max=3650, metavar="N", help="Days it may be played for.")
    ] = 14,
    workers: WorkersOption = None,
    ray: RayOption = None,
    given: GivenOption = None,
    task: TaskOption = "",
    json: JsonOption = False,
) -> None:
    """Find the constants of the simulator with which it foretells the recordings of a trial.

    Each recording is fitted by itself; how far their estimates spread makes the intervals. Noise of
    the sensors and a hidden force are found as well. What was done is kept in the trial: the same
    command goes on where it was stopped. Exit code 0 if a snapshot was written, whatever it says; 1
    if nothing could be found.

    Example: robo-eval calibrate fit runs/gantry --out gantry.yaml
    """
    from robo_eval.log.provenance import cores
    from robo_eval.log.snapshot import read_snapshot, write_snapshot
    from robo_eval_calibration.checkup import keep, kept, passed
    from robo_eval_calibration.made import LEAST, snapshot_name, split

    check_own(out, "calibration snapshot", "--out", read_snapshot)
    called = snapshot_name(name or out.stem)
    opened = TrialDirectory.open(trial)
    gathered = _gathered(opened, task, quiet=json)
    known = _given(given, gathered.task)
    checkup = kept(opened, gathered, known)
    if checkup is None:
        checkup = _checked(gathered, known, quiet=json)
        keep(opened, checkup)
    passed(checkup)
    recordings, held_out = split(gathered.recordings, hold_out)
    count = cores() if workers is None else workers
    if not json:
        cost = _CPU_S_A_RECORDING[gathered.task.replay] * len(recordings)
        where = "" if ray is not None else f"; {duration(cost / min(count, len(recordings)))} here"
        say(f"{counted(len(recordings), 'recording')} to fit, {len(held_out)} held out: about"
            f" {duration(cost)} of one core{where}")  # fmt: skip
    snapshot = fitted_snapshot(
        opened, recordings, held_out, known,
        name=called, valid_days=valid_days, workers=count, ray=ray, quiet=json,
    )  # fmt: skip
    if not snapshot.tells:
        raise CheckFailedError(
            f"{trial}: nothing could be found; `robo-eval calibrate check` says what to record"
        )
    write_snapshot(snapshot, out)
    if json:
        print_json({"snapshot": str(out), **snapshot.model_dump(mode="json", by_alias=True)})
        return
    _print_fit(snapshot)
    say(f"snapshot: {out}")
    if len(snapshot.used) < LEAST:
        say("a snapshot that was made from one recording is never accepted: record more")
    other = quoted(trial)
    if len(held_out) < LEAST:
        say("validate with another trial: too few recordings were held out of this one")
        other = "OTHER_TRIAL"
    next_steps(f"robo-eval calibrate validate {quoted(out)} {other}")


@app.command("validate", short_help="Say whether a snapshot foretells other recordings.")
def validate(
    snapshot: SnapshotArgument,
    trial: TrialArgument,
    *,
    json: JsonOption = False,
) -> None:
    """Say whether a snapshot foretells recordings better that it was not made from.

    Recordings it was made from do not count. It is accepted only if the error of the others falls
    by more than 2 %, by an interval over recordings, and if noise explains what is left; the
    snapshot then says so, or why not, and the last time counts. Exit code 1 if it is not accepted.

    Example: robo-eval calibrate validate gantry.yaml runs/gantry
    """
    from threadpoolctl import threadpool_limits

    from robo_eval.log.snapshot import read_snapshot, write_snapshot
    from robo_eval_calibration.checks import checked
    from robo_eval_calibration.checkup import not_refused
    from robo_eval_calibration.fit import model_of
    from robo_eval_calibration.made import accepted, unused, validated

    made = read_snapshot(snapshot)
    opened = TrialDirectory.open(trial)
    if made.task not in {task.env for task in opened.plan.tasks}:
        raise InputError(f"{snapshot}: is of {made.task}, which is not played in {trial}")
    gathered = _gathered(opened, made.task, quiet=json)
    recordings = unused(made, gathered.recordings)
    for problem in made.problems(robot=recordings[0].robot):
        raise InputError(f"{snapshot}: {problem}; name a trial of that robot")
    # Few ticks make the interval wide, and need no refusal.
    findings = checked(recordings, gathered.task)
    not_refused([one for one in findings if one.check != "length"])
    with threadpool_limits(1):
        found = validated(made, recordings, model_of(recordings[0]))
    verdict = accepted(made, found)
    write_snapshot(made.model_copy(update={"accepted": verdict}), snapshot)
    if json:
        print_json({"snapshot": str(snapshot), **plain(verdict)})
    else:
        _print_validation(verdict)
    if not verdict.verdict:
        raise CheckFailedError(f"{snapshot}: not accepted: {verdict.reason}")
    if not json:
        say("accepted: the simulator foretells these recordings better with it")


@app.command("loop", short_help="Say what calibration gains with more recordings.")
@taking(PlayOptions, "jobs", "ray", "with_report", "json")
def loop(
    how: PlayOptions,
    trial: TrialArgument,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Trial to play it in.")],
    sizes: Annotated[
        str, typer.Option("--recordings", metavar="N,N...", help="Numbers of recordings to fit.")
    ] = "1,2,4,8",
    randomised: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW,HIGH",
            help="What domain randomisation draws of a constant; default 30 % about nominal.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option(metavar="NAME", help="Whose episodes; needed where there are several.")
    ] = "",
    episodes: Annotated[
        int | None, typer.Option(min=2, metavar="N", help="Most episodes to compare; default all.")
    ] = None,
    given: GivenOption = None,
    task: TaskOption = "",
) -> None:
    """Compare simulation with a robot before calibration, after it, and randomised.

    So many recordings of the trial are fitted. All other episodes are played in simulation from the
    states in which they began: with the simulator as it is, with the constants that were found,
    with the noise of the sensors as well, with the hidden force as well, and with constants drawn
    at random. A table, loop.json and the report of the trial DIR say how far success is apart. The
    same command goes on where it was stopped.

    Example: robo-eval calibrate loop runs/gantry --out runs/gantry-loop
    """
    from robo_eval.cli.calibrate_loop import asked_ranges, opened_loop, play_loop, sizes_of
    from robo_eval_calibration.checks import checked
    from robo_eval_calibration.checkup import not_refused
    from robo_eval_calibration.loop import chosen, plan_of, ranges_of

    numbers, opened = sizes_of(sizes), TrialDirectory.open(trial)
    gathered = _gathered(opened, task, quiet=how.json)
    known = _given(given, gathered.task)
    ranges = ranges_of(gathered.task, known, asked_ranges(randomised or [], gathered.task))
    try:
        told = chosen(gathered, numbers, policy=policy, episodes=episodes)
    except InputError as err:
        raise InputError(f"{trial}: {err}") from err
    plan = plan_of(opened, told, ranges, known)
    check_names(plan)
    not_refused(checked(told.fitted, gathered.task))
    if not how.json:
        cost = duration(_CPU_S_A_RECORDING[gathered.task.replay] * sum(told.sizes))
        say(
            f"{counted(len(told.fitted), 'recording')} to fit, about {cost} of one core;"
            f" {counted(len(told.compared), 'episode')} to simulate {told.ways} times each,"
            f" {told.ways * len(told.compared):,} in all"
        )
    play_loop(opened_loop(opened, plan, told, out, known, how), told, how)


@app.command("export", short_help="Write what was found for other programs.")
def export(
    snapshot: SnapshotArgument,
    *,
    urdf: Annotated[
        bool, typer.Option("--urdf", help="The task's model, as far as it holds the constants.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Constants with units and intervals.")] = (
        False
    ),
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write; default the screen.")
    ] = None,
) -> None:
    """Write what a snapshot found in a form that other programs read.

    A file that is there is replaced only if it was written so.

    Example: robo-eval calibrate export gantry.yaml --urdf --out gantry.urdf
    """
    import json as form

    from robo_eval.log.snapshot import read_snapshot
    from robo_eval_calibration.exported import as_json, as_urdf, check_export

    if urdf == json:
        raise InputError("choose one form: --urdf or --json")
    if out is not None:
        check_own(out, "export of this form", "--out", partial(check_export, urdf=urdf))
    made = read_snapshot(snapshot)
    if urdf:
        text, lacking = as_urdf(made)
        if lacking:
            typer.echo(f"not in the model: {', '.join(lacking)}", err=True)
    else:
        text = form.dumps(as_json(made), indent=2, allow_nan=False) + "\n"
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text.encode())
        say(f"written: {out}")


def fitted_snapshot(
    trial: TrialDirectory,
    recordings: Sequence[Recording],
    others: Sequence[Recording],
    given: Mapping[str, float],
    *,
    name: str,
    valid_days: int = 14,
    workers: int,
    ray: str | None,
    quiet: bool,
) -> Snapshot:
    """Fit recordings with a bar; what was done is kept in their trial."""
    from robo_eval_calibration.fit import fitted, model_of
    from robo_eval_calibration.made import snapshot_of

    title = f"fit {counted(len(recordings), 'recording')}"
    with progress(title, quiet=quiet) as told:
        found = fitted(
            recordings,
            given=given,
            workers=workers,
            ray=ray,
            jobs_folder=trial.path / CALIBRATION / "fits",
            progress=None if told is None else lambda done, total: told(done, total, ""),
        )
    return snapshot_of(
        found, recordings, others, model=model_of(recordings[0]), name=name,
        plan_digest=trial.plan_digest, valid_days=valid_days,
    )  # fmt: skip


def _gathered(trial: TrialDirectory, task: str, *, quiet: bool) -> Gathered:
    """The recordings of a trial, read with a bar."""
    from robo_eval_calibration.recordings import gathered

    with progress("read", quiet=quiet) as told:
        show = None if told is None else lambda done, total: told(done, total, "")
        return gathered(trial, task, show)


def _checked(gathered: Gathered, given: Mapping[str, float], *, quiet: bool) -> Checkup:
    from threadpoolctl import threadpool_limits

    from robo_eval_calibration.checkup import checkup

    # Matrices are tiny: threads of the library of numbers would only wait for each other.
    with progress("check", quiet=quiet), threadpool_limits(1):
        return checkup(gathered, given)


def _given(texts: list[str] | None, task: TaskSpec) -> dict[str, float]:
    """Constants that are known, from `NAME=VALUE`.

    Raises:
        InputError: If one is none of the task, or its value is none.
    """
    from robo_eval_calibration.innovations import physics_of

    found: dict[str, float] = {}
    for text in texts or []:
        name, _, value = text.partition("=")
        if name in found:
            raise InputError(f"--given: {name} is given twice")
        try:
            found[name] = float(value)
        except ValueError as err:
            raise InputError(f"--given: NAME=VALUE is needed, given {text!r:.80}") from err
    try:
        known = task.checked(found)
    except InputError as err:
        raise InputError(f"--given: {err}") from err
    for name in known.keys() - physics_of(task).keys():
        raise InputError(f"--given: {name} is found beside the constants; leave it out")
    return known


def _print_check(found: Checkup) -> None:
    rows = [
        [one.check, one.verdict, ": ".join(filter(None, (one.recording, one.text))), one.remedy]
        for one in found.findings
    ]
    columns = ["check", "verdict", "found", "remedy"]
    title = f"{counted(found.recordings, 'recording')} of {found.task}"
    print_table(title, columns, rows, prose=(2, 3))
    for reason, number in Counter(found.left_out.values()).items():
        say(f"left out: {counted(number, 'episode')} {reason}")
    if found.constants:
        print_table(
            "what a fit of these recordings will tell",
            ["constant", "half-width", "wanted", "verdict", "told apart from"],
            [
                [name, f"{one.half_width:.3g}", f"{one.wanted:.3g}", one.verdict,
                 f"not {', '.join(one.partners)}" if one.partners else ""]
                for name, one in found.constants.items()
            ],
            right=(1, 2),
            prose=(4,),
        )  # fmt: skip
    if found.motion is not None:
        told, now = found.motion.singular_value, found.motion.without
        times = f"{told / now:.2g}" if told < 100.0 * now else "100 or more"
        say(
            f'to record next: agent "{found.motion.policy}"; what is known least is then known'
            f" {times} times as exactly"
        )
    confounded = [name for name, one in found.constants.items() if one.partners]
    if confounded:
        say(f"say one of {', '.join(confounded)} by --given if it is known, such as weighed")


def _print_fit(snapshot: Snapshot) -> None:
    rows = []
    for name, one in snapshot.constants.items():
        value = "-" if one.value is None else f"{one.value:.4g}"
        ends = "-" if one.low is None or one.high is None else f"[{one.low:.4g}, {one.high:.4g}]"
        usual = "-" if one.nominal is None else f"{one.nominal:.4g}"
        played = "estimate" if one.kept is None else f"{one.kept:.4g}"
        rows.append([name, value, ends, usual, one.verdict, played])
    made_of = counted(len(snapshot.used), "recording")
    print_table(
        f"calibration {snapshot.name} of {snapshot.robot}, {made_of}",
        ["constant", "value", "95 %", "nominal", "verdict", "played"],
        rows,
        right=(1, 3),
    )
    for name, one in snapshot.constants.items():
        if one.reason is not None and one.verdict != "given":
            say(f"{name}: {one.reason}")
    left, noise = snapshot.residuals, snapshot.noise_found
    for name, size in noise.items():
        say(f"{name}: {size}")
    if not snapshot.noise.force:
        say("recordings are played whole: no hidden force and no missing one is looked for")
    elif not noise.keys() & snapshot.noise.force.keys():
        say("no hidden force")
    for warning in snapshot.clamped:
        say(warning)
    if left.verdict == "structure":
        say(f"no constants explain these recordings: {'; '.join(left.reasons)}")
        say("so nothing that was found is played, neither noise nor force")
    elif left.skill is not None:
        say(f"the constants explain these recordings: skill {left.skill:.2f}")


def _print_validation(verdict: Accepted) -> None:
    errors = verdict.errors.items()
    print_table(
        "error of predictions, in standard deviations of the noise",
        ["recording", "nominal", "calibrated"],
        [[name, f"{one.nominal:.3f}", f"{one.calibrated:.3f}"] for name, one in errors],
        right=(1, 2),
    )
    if verdict.fall is not None and verdict.low is not None and verdict.high is not None:
        say(f"the error falls by {verdict.fall:.1%} [{verdict.low:.1%}, {verdict.high:.1%}]")
    say(f"left: {verdict.left:.2f} standard deviations of the noise; {verdict.LEAVES}")
