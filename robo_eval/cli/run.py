"""`robo-eval run`, `resume`, `partner` and `recover`: play a plan, and go on after a stop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from robo_eval.cli.blind import blinding_until_complete, coded, print_coded
from robo_eval.cli.checks import check_names, needed_bytes
from robo_eval.cli.incidents_common import is_there, readable
from robo_eval.cli.options import taking
from robo_eval.cli.output import JsonOption, next_steps, print_json, quoted, say
from robo_eval.cli.physical import check_physical, keep_robot_file, named_operator, play_physical
from robo_eval.cli.progress import episode_progress
from robo_eval.cli.summary import coverage_problem, print_summary, summary_of, verification_problem
from robo_eval.cli.view import view_target
from robo_eval.core.episode import Episode
from robo_eval.core.errors import (
    CheckFailedError,
    InputError,
    MissingExtraError,
    NotHereError,
    PlanError,
)
from robo_eval.core.kinds import Side
from robo_eval.core.names import unknown_name
from robo_eval.core.wording import counted
from robo_eval.log.directory import ROBOT_FILE, TrialDirectory
from robo_eval.log.incident_log import DATABASE
from robo_eval.log.store import EpisodeStore
from robo_eval_incidents.words import Status

if TYPE_CHECKING:
    from robo_eval.core.blinding import Blinding
    from robo_eval.core.plan import TrialPlan
    from robo_eval.log.recovery import Recovered
    from robo_eval.metrics.summary import TrialSummary
    from robo_eval_robot.conductor import PhysicalResult
    from robo_eval_sim.runner import RunResult

    Tell = Callable[[TrialDirectory, TrialSummary], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayOptions:
    """How a trial is played, as the verbs that play one ask for it.

    Attributes:
        robot: Robot file.
        auto: Whether nobody is asked anything.
        operator: Who is at the robot.
        view: Whether a window shows the robot.
        view_to: Where the view goes instead.
        jobs: Worker processes.
        ray: Address of a Ray cluster.
        with_report: Whether the report is written.
        json: Whether to answer as JSON.
    """

    robot: Annotated[
        Path | None,
        typer.Option(metavar="ROBOT", help="Robot file (YAML); a twin of the gantry is built in."),
    ] = None
    auto: Annotated[
        bool, typer.Option("--auto", help="Ask nobody anything; for a twin, which sets itself up.")
    ] = False
    operator: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who is at the robot; kept in the log.")
    ] = None
    view: Annotated[
        bool,
        typer.Option("--view", help="Show the robot live in a window (needs the extra view)."),
    ] = False
    view_to: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.rrd|URL",
            help="Keep what --view shows in a file, or send it to a viewer,"
            " rerun+http://HOST:PORT/proxy.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Worker processes; default one per core."),
    ] = None
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Play simulated episodes on this Ray cluster instead."
        ),
    ] = None
    with_report: Annotated[
        bool, typer.Option("--report/--no-report", help="Write the HTML report.")
    ] = True
    json: JsonOption = False

    def with_view(self, sides: Sequence[Side]) -> PlayOptions:
        """The same with the place where the view goes, which is checked."""
        return replace(self, view_to=view_target(self.view, self.view_to, sides))


@taking(PlayOptions)
def run(
    how: PlayOptions,
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="Plan file (YAML).")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="Trial directory to create.")],
    sides: Annotated[
        str | None, typer.Option(help="Sides to play now, comma separated; by default all planned.")
    ] = None,
) -> None:
    """Lock a plan in a new trial directory, play it, and write the report.

    Everything is checked before the first tick. Exit code 1 if fewer than 95 % of the episodes
    have a score, 3 if interrupted; `resume` goes on after that. The first Ctrl-C lets the running
    simulated episodes finish; a second one cuts them off. A robot stops at once. A physical side
    (twin or real) is played through ROS 2; each of its episodes gets a simulated partner that
    starts from the same state, at once with `--sides sim,twin`, or later by `robo-eval partner`.

    Example: robo-eval run examples/plans/first.yaml --out runs/first
    """
    if not plan.exists():
        raise PlanError(f"{plan}: no such plan file; the repository has some in examples/plans")
    chosen_sides = _sides_of(sides)
    chosen = _with_sides(plan_to_play(plan), chosen_sides)
    played = chosen_sides or chosen.sides
    try:
        start(chosen, out, how.with_view(played), sides=played)
    except PlanError as err:
        raise PlanError(f"{plan}: {err}") from err


@taking(PlayOptions)
def resume(
    how: PlayOptions,
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
) -> None:
    """Bring a trial to its end: save what a crash left, play what is open, fill in pairs.

    First it saves what a cut-off run left, as `recover` does. Then it plays every side of the plan,
    and the simulated half of each pair, as `partner` does. A simulated episode whose trace is
    missing or damaged is played again. Sides that this machine cannot play, because it has no robot
    or no simulator, are named with the command for a machine that can; this is not a failure.
    Complete episodes are left alone, so you can call it as often as you like, on one machine after
    the other.

    Example: robo-eval resume runs/first
    """
    opened = opened_whole(trial)
    sides = opened.plan.sides
    how = how.with_view(sides)
    if opened.plan.imported is None and set(sides) != {Side.SIM}:
        _recover(opened, quiet=how.json)
    play(opened, how, sides=sides, may_leave=True)


@taking(PlayOptions, "jobs", "ray", "with_report", "json")
def partner(
    how: PlayOptions,
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
) -> None:
    """Play the simulated half of every pair whose physical half was scored.

    Each simulated episode starts from the state the robot really started in. It works on any
    machine with a simulator. Complete episodes are left alone, so you can call it as often as you
    like.

    Example: robo-eval partner runs/matched
    """
    opened = opened_whole(trial)
    if set(opened.plan.sides) == {Side.SIM}:
        raise InputError(
            f"{trial}: its plan has simulated episodes only, which need no partner; play them by:"
            f" robo-eval resume {quoted(trial)}"
        )
    play(opened, how, sides=(Side.SIM,))


def recover(
    trial: Annotated[Path, typer.Argument(metavar="DIR", help="Trial directory.")],
    *,
    json: JsonOption = False,
) -> None:
    """Make torn bags readable, log the episodes they belong to as lost, and draft incidents.

    Every complete chunk of a bag is kept. Incidents are drafted if the run had opened its incident
    log. Sound files are left alone, so you can call it as often as you like; `resume` does the same
    first. Exit code 1 if something could not be read.

    Example: robo-eval recover runs/matched
    """
    opened = TrialDirectory.open(trial)
    found = _recovered(opened)
    if json:
        print_json(
            {
                "trial": str(trial),
                "bags": list(found.bags),
                "rows": list(found.rows),
                "failed": list(found.failed),
            }
        )
    else:
        _print_recovered(found)
        if opened.status() != "complete":
            next_steps(f"robo-eval resume {quoted(trial)}")
    if found.failed:
        sys.stdout.flush()
        raise CheckFailedError("; ".join(found.failed))


def _recovered(trial: TrialDirectory) -> Recovered:
    """Save what a run that was cut off left in a trial; nothing is done twice."""
    from robo_eval.log.recovery import recover_trial
    from robo_eval_incidents.capture import capture

    was_complete = trial.status() == "complete"
    with trial.lock(), EpisodeStore(trial.path, durable=True) as store:
        found = recover_trial(trial, store)
        is_changed = bool(found.bags or found.rows or found.failed)
        status = "complete" if was_complete and not is_changed else "interrupted"
        trial.write_manifest(status=status, store=store)
        if (trial.path / DATABASE).exists():
            capture(trial.path)
    return found


def _print_recovered(found: Recovered) -> None:
    """What was saved, for people."""
    bags, rows = counted(len(found.bags), "bag"), counted(len(found.rows), "episode")
    say(f"{bags} made readable, {rows} logged as lost")
    for name in found.rows:
        say(f"  {name}")


def _recover(trial: TrialDirectory, *, quiet: bool) -> None:
    """Save what a run on a robot that was cut off left, and say what that was."""
    found = _recovered(trial)
    for problem in found.failed:
        typer.echo(f"not recovered: {problem}", err=True)
    if not quiet and (found.bags or found.rows):
        _print_recovered(found)


def plan_to_play(path: Path) -> TrialPlan:
    """The plan of a file, which must not be that of an imported trial.

    Its files of metrics are registered, its snapshots read, and both named as they will lie in the
    trial: see `start`.
    """
    from robo_eval.cli.calibrations import with_snapshots
    from robo_eval.core.plan import read_plan

    plan = read_plan(path)
    if plan.imported is not None:
        raise PlanError(
            f"{path}: imported: nothing is played of an imported trial; remove the section, or"
            " import its file by `robo-eval import csv`"
        )
    plan = with_snapshots(plan, path)
    if not plan.metrics.modules:
        return plan
    from robo_eval.metrics.registry import load_files

    files = [path.parent / name for name in plan.metrics.modules]
    load_files(files, asked_by=f"{path}: metrics.modules: ")
    metrics = plan.metrics.model_copy(update={"modules": tuple(one.name for one in files)})
    return plan.model_copy(update={"metrics": metrics})


def opened_whole(trial: Path) -> TrialDirectory:
    """A trial directory whose log is whole.

    Raises:
        CheckFailedError: If its rows are not those that were written.
    """
    from robo_eval.analysis.trial import log_problem

    opened = TrialDirectory.open(trial)
    # A manifest that is gone is written anew; nothing said how many rows there should be.
    problem = verification_problem(trial, log_problem(opened)) if opened.manifest else None
    if problem:
        raise CheckFailedError(f"nothing was played: {problem}")
    return opened


def start(
    plan: TrialPlan,
    out: Path,
    how: PlayOptions,
    *,
    sides: Sequence[Side],
    tell: Tell | None = None,
) -> None:
    """Check everything that can be checked before the first tick, then play."""
    from robo_eval.cli.calibrations import snapshot_texts
    from robo_eval.metrics.registry import FILES

    # What is quick to refuse comes first; building policies and worlds comes last.
    TrialDirectory.check_new(out, needed_bytes=needed_bytes(plan))
    check_names(plan, probed=Side.SIM in sides)
    keep = None
    if set(sides) - {Side.SIM}:
        robot = check_physical(plan, how.robot, auto=how.auto)
        operator = named_operator(plan, how.operator, auto=how.auto)
        how = replace(how, robot=robot, operator=operator)
        keep = keep_robot_file
    if Side.SIM in sides:
        from robo_eval_sim.runner import check_plan

        for remark in check_plan(plan):
            typer.echo(f"{plan.name}: {remark}", err=True)
        if how.ray is not None:
            from robo_eval.core.spread import cluster_cores

            cluster_cores(how.ray)
    modules = {name: FILES[name].source for name in plan.metrics.modules}
    trial = TrialDirectory.create(out, plan, files=modules | snapshot_texts(plan))
    if keep is not None and how.robot is not None:
        keep(trial.path, how.robot)
    if not how.json:
        say(f"{plan.name}: plan {trial.plan_digest[:12]} locked in {trial.path}")
    try:
        play(trial, how, sides=sides, tell=tell)
    except KeyboardInterrupt:
        from robo_eval.core.errors import InterruptedRunError

        raise InterruptedRunError(
            f"stopped by Ctrl-C; go on with: robo-eval resume {quoted(trial.path)}"
        ) from None


def play(
    trial: TrialDirectory,
    how: PlayOptions,
    *,
    sides: Sequence[Side],
    may_leave: bool = False,
    tell: Tell | None = None,
) -> None:
    """Play what is missing, print the summary, and say what can be done next.

    With `may_leave`, what this machine cannot play is left to another one; `tell` is called
    instead of printing, once all is played.
    """
    played, left = _play_sides(trial, sides, how, may_leave=may_leave)
    if left and trial.frame().empty:  # there is nothing to sum up
        if how.json:
            print_json(_as_json(trial, played, left, None))
        else:
            _print_next(trial, sides, left)
        return
    summary = summary_of(trial)
    blinding = blinding_until_complete(trial)
    page = None
    if how.with_report and not blinding.codes:
        from robo_eval.report.build import build_report

        page = build_report(trial, summary=summary)
    if tell is not None:
        tell(trial, summary)
    elif how.json:
        print_json(_as_json(trial, played, left, page))
    else:
        _print_played(played, summary, blinding, page)
        _print_next(trial, sides, left)
    problem = verification_problem(trial.path, summary.log_problem)
    if not left:  # else it is not over
        problem = problem or coverage_problem(summary, sides)
    if problem:
        sys.stdout.flush()
        raise CheckFailedError(coded(problem, trial, blinding))


def _play_sides(
    trial: TrialDirectory,
    sides: Sequence[Side],
    how: PlayOptions,
    *,
    may_leave: bool,
) -> tuple[list[SidePlayed], list[Left]]:
    """Play each side, the robot first: its episodes say where the simulated ones start."""
    played: list[SidePlayed] = []
    left: list[Left] = []
    for side in sorted(sides, key=lambda side: side is Side.SIM):
        try:
            if side is Side.SIM:
                done = _play_simulated(trial, how)
            else:
                done = _play_physical(trial, side, how, may_skip=may_leave)
            played.append(done)
        except (MissingExtraError, NotHereError) as err:
            if not may_leave:
                raise
            left.append(_left(trial, side, str(err)))
    return played, left


def _as_json(
    trial: TrialDirectory, played: Sequence[SidePlayed], left: Sequence[Left], page: Path | None
) -> dict[str, Any]:
    return {
        "trial": str(trial.path),
        "plan_digest": trial.plan_digest,
        "planned": sum(part.planned for part in played),
        "played": sum(part.played for part in played),
        "unscored": sum(part.unscored for part in played),
        "seconds": round(sum(part.seconds for part in played), 3),
        "report": str(page) if page else None,
        "elsewhere": [
            {"side": one.side, "reason": one.reason, "command": one.command} for one in left
        ],
    }


def _print_next(trial: TrialDirectory, sides: Sequence[Side], left: Sequence[Left]) -> None:
    """What can be done next, here or where the rest can be played."""
    where = quoted(trial.path)
    for one in left:
        say(f"{one.side}: cannot be played on this machine: {one.reason}")
    if left:
        say("on a machine that can:")
        for command in dict.fromkeys(one.command for one in left):
            say(f"  {command}")
    elif Side.SIM in trial.plan.sides and Side.SIM not in sides:
        next_steps(*_to_review(trial), f"robo-eval partner {where}", f"robo-eval metrics {where}")
    elif set(sides) == {Side.SIM}:
        next_steps(f"robo-eval metrics {where}", f"robo-eval verify {where}")
    else:
        next_steps(*_to_review(trial), f"robo-eval assess {where}", f"robo-eval verify {where}")


def _to_review(trial: TrialDirectory) -> Sequence[str]:
    """What names the drafts of incidents of a trial, where some wait for a person."""
    from robo_eval_incidents.lists import Filter, list_incidents

    log = f"{trial.path}/"
    if not is_there(log):
        return ()
    with readable(log) as found:
        drafts = list_incidents(found, Filter(status=Status.DRAFT), limit=1).rows
    return [f"robo-eval incidents todo --log {quoted(trial.path)}"] * bool(drafts)


def _print_played(
    played: Sequence[SidePlayed],
    summary: TrialSummary,
    blinding: Blinding,
    page: Path | None,
) -> None:
    """What was played, and how it went: by code as long as nobody is to know the names."""
    for part in played:
        say(_played(part))
    if blinding.codes:
        print_coded(summary, blinding)
        return
    print_summary(summary, by_level=False)
    if page:
        say(f"report: {page}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SidePlayed:
    """What was played on one side.

    Attributes:
        planned: Episodes that side was to have.
        unscored: Of those, the ones without a score.
        played: Attempts of this call.
        seconds: Wall time.
        again: Attempts on a robot or twin at an episode that was tried before.
        where: On what, for the line that is printed.
    """

    planned: int
    unscored: int
    played: int
    seconds: float
    where: str
    again: int = 0

    @classmethod
    def of(cls, result: PhysicalResult | RunResult, where: str) -> SidePlayed:
        """The same of how a run ended, and what it was played on."""
        return cls(
            planned=result.planned,
            unscored=result.unscored,
            played=result.played,
            seconds=result.seconds,
            where=where,
            again=getattr(result, "again", 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A side that this machine cannot play.

    Attributes:
        side: Which.
        reason: Why not.
        command: What to type on a machine that can.
    """

    side: Side
    reason: str
    command: str


def _left(trial: TrialDirectory, side: Side, reason: str) -> Left:

    command = f"robo-eval resume {quoted(trial.path)}"
    if side is not Side.SIM:
        if not (trial.path / ROBOT_FILE).exists():
            command += " --robot ROBOT.yaml"
        if trial.plan.judging.verdict == "operator":
            command += " --operator NAME"
    return Left(side=side, reason=reason, command=command)


def _played_already(trial: TrialDirectory, side: Side) -> SidePlayed | None:
    """A physical side on which nothing is left to do; None if something is, or may be."""
    from robo_eval.core.schedule import attempts_of, count_unscored, schedule
    from robo_eval.core.series import due

    if Side.SIM not in trial.plan.sides and trial.status() != "complete":
        return None  # the run on the robot writes that it is
    with EpisodeStore(trial.path, durable=False) as store:
        attempts = attempts_of(store.episodes(), side)
    if due(trial.plan, side, attempts):
        return None
    planned = schedule(trial.plan, side)
    return SidePlayed(
        planned=len(planned),
        unscored=count_unscored(planned, attempts),
        played=0,
        seconds=0.0,
        where="",
    )


def _play_physical(
    trial: TrialDirectory, side: Side, how: PlayOptions, *, may_skip: bool
) -> SidePlayed:
    """Play what is missing on a robot; with `may_skip` it is not needed if nothing is."""
    if may_skip and how.robot is None and (done := _played_already(trial, side)):
        return done
    operator = named_operator(trial.plan, how.operator, auto=how.auto)
    return SidePlayed.of(*play_physical(trial, replace(how, operator=operator)))


def _play_simulated(trial: TrialDirectory, how: PlayOptions) -> SidePlayed:
    from robo_eval_sim.runner import default_jobs, run_simulated

    jobs = how.jobs if how.ray is not None else how.jobs or default_jobs()
    label = _partner_label(trial) if set(trial.plan.sides) - {Side.SIM} else None
    with episode_progress(trial.path.name, quiet=how.json, label=label) as on_progress:
        result = run_simulated(
            trial,
            jobs=jobs,
            ray=how.ray,
            on_progress=on_progress,
            say=lambda line: typer.echo(line, err=True),
        )
    where = f"the cluster at {how.ray}" if how.ray is not None else counted(jobs or 1, "worker")
    return SidePlayed.of(result, where)


def _partner_label(trial: TrialDirectory) -> Callable[[Episode], str]:
    """What is said of the newest simulated partner."""
    from robo_eval.core.blinding import blinding_of

    blinding = blinding_of(trial.plan, trial.plan_digest)

    def label(row: Episode) -> str:
        return f"{blinding.episode(row.pair_id or row.episode_id)}, simulated, no guard"

    return label


def _played(part: SidePlayed) -> str:
    counts = f"{part.planned} planned, {part.unscored} without a score"
    if not part.played:
        return f"nothing is missing: {counts}"
    rate = part.played / part.seconds
    speed = f"{rate:.0f}/s" if rate >= 1.0 else f"{60.0 * rate:.0f} a minute"
    return (
        f"{part.played} episodes played{f', {part.again} of them again,' * bool(part.again)} in"
        f" {part.seconds:.1f} s ({speed} on {part.where}), {counts}"
    )


def _sides_of(text: str | None) -> tuple[Side, ...] | None:
    """The sides an option names, checked before anything slow is loaded."""
    if text is None:
        return None
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in list(Side):
            raise unknown_name("side", name, list(Side))
    return tuple(dict.fromkeys(Side(name) for name in names))


def _with_sides(plan: TrialPlan, sides: tuple[Side, ...] | None) -> TrialPlan:
    """The plan with the sides to be played, and the simulated partners of physical episodes."""
    wanted = sides or plan.sides
    physical = [side for side in (Side.TWIN, Side.REAL) if side in wanted]
    if len(physical) > 1:
        raise PlanError(
            "sides: twin and real are played as trials of their own, each with its robot file"
        )
    if sides is None:
        return plan
    if not physical:
        return plan.model_copy(update={"sides": (Side.SIM,)})
    return plan.model_copy(update={"sides": (Side.SIM, *physical)})
