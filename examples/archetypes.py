"""Four archetype robots with synthetic logs, and the autonomy level each of them supports.

No robot was driven: every number below is made up, and everything that is written says SYNTHETIC.
Run it to write the four trial directories anew into runs/archetypes.
"""

import json
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from robo_eval.core.kinds import EndReason, Side
from robo_eval.core.plan import parse_plan
from robo_eval.core.schedule import schedule
from robo_eval.core.trajectory import Trajectory
from robo_eval.gates.trial import assess_trial
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.planned_row import row_for
from robo_eval.log.store import EpisodeStore
from robo_eval.log.trace import write_trace

FOLDER = Path("runs/archetypes")
START = datetime(2026, 3, 2, tzinfo=UTC)
FAMILIES = ("PickPlace", "Drawer", "Insertion", "Stacking", "Pouring")
HOUR_S = 3600.0


@dataclass(frozen=True)
class Archetype:
    """What is made up about one robot.

    Attributes:
        name: Name of its policy.
        episodes: On the robot, in each family; as many in simulation.
        hours: Exposure of each of them.
        fails_every: One episode of so many fails.
        actions: Uninterrupted actions of each episode, of 50 that count in full.
        depth: Stages of the plans that solve a task.
        tools: Tool categories that it uses under mild drift.
        learns: Families in which it becomes better by itself, day by day.
        half_life_days: Days after which it has forgotten half of what it was taught.
        recall: Share of what it is asked for that is among the first five it returns.
        gain: What its changes to itself brought; None if nobody looked.
        forecast: Probability of success it states where it will succeed, and where it will not.
        pair: Of 200 tasks of which one robot solves 80, those two of them solve; 0 if nobody tried.
        grows: Whether it brought in a new tool by itself.
    """

    name: str
    episodes: int
    hours: float
    fails_every: int
    actions: int
    depth: int
    tools: tuple[str, ...] = ()
    learns: tuple[str, ...] = ()
    half_life_days: float = 2.0
    recall: float = 0.5
    gain: float | None = None
    forecast: tuple[float, float] = (0.5, 0.5)
    pair: int = 0
    grows: bool = False


TOOLS = ("gripper", "suction cup", "camera", "screwdriver", "cutter", "force sensor")
ARCHETYPES = (
    Archetype("synthetic-scripted", 40, 0.5, 12, 48, 1, tools=TOOLS[:1]),
    Archetype("synthetic-agentic", 40, 1.0, 4, 40, 6, tools=TOOLS[:3], half_life_days=7.0),
    Archetype(
        "synthetic-self-improving", 100, 8.0, 12, 60, 6, tools=TOOLS[:5], learns=FAMILIES[:1],
        half_life_days=14.0, recall=0.8, gain=0.04, forecast=(0.9, 0.4), pair=110,
    ),
    Archetype(
        "synthetic-orchestrator", 200, 7.0, 25, 60, 8, tools=TOOLS, learns=FAMILIES,
        half_life_days=30.0, recall=0.9, gain=0.06, forecast=(0.97, 0.05), pair=170, grows=True,
    ),
)  # fmt: skip


def main() -> None:
    """Write the four trials, and say which level each supports and what it lacks."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    for archetype in ARCHETYPES:
        trial = make(archetype, FOLDER / archetype.name)
        (found,) = assess_trial(trial)
        print(f"{found.policy}: AAI-{found.level_conservative} (SYNTHETIC)")
        for lacking in found.lacking[:3]:
            print(f"  missing for AAI-{found.next_level}: {lacking.text}")


def make(archetype: Archetype, folder: Path) -> TrialDirectory:
    """The trial directory of one archetype, in the form a run on a robot would leave."""
    plan = parse_plan(plan_text(archetype), source="synthetic plan")
    trial = TrialDirectory.create(folder, plan)
    trace = write_trace(folder / "traces" / "synthetic.mcap", still())
    rows = []
    for side in (Side.SIM, Side.REAL):
        hours = 0.0 if side is Side.SIM else archetype.hours
        for i, planned in enumerate(schedule(trial.plan, side)):
            pair = planned.base_id.removesuffix(f"-{side.value}")
            solved = (i + 1) % archetype.fails_every > 0
            forecast = archetype.forecast[0 if solved else 1]
            measured = {
                "policy_digest": "0" * 64,
                "start_ns": int((START + timedelta(hours=i * hours)).timestamp()) * 10**9,
                "duration_s": hours * HOUR_S,
                "exposure_s": hours * HOUR_S,
                "ticks": archetype.actions,
                "episode_return": float(solved),
                "quality": float(solved),
                "success": solved,
                "end_reason": EndReason.SUCCESS if solved else EndReason.FAILURE,
                "uninterrupted_actions": archetype.actions,
                "plan_depth": archetype.depth,
                "stated_success_probability": forecast,
                "control_quality": {"jerk_rms": 0.9 + 0.2 * (i % 2)},
                "calibration": "SYNTHETIC" if side is Side.SIM else None,
                "software": "SYNTHETIC",
            }
            if side is Side.REAL:
                measured |= {"trace_uri": "traces/synthetic.mcap", "trace_sha256": trace}
                measured |= {"robot": "SYNTHETIC"}
            rows.append(
                row_for(replace(planned, pair_id=pair), plan, trial.plan_digest, **measured)
            )
    with EpisodeStore(folder, durable=False) as store:
        store.append(rows)
        trial.write_manifest(status="complete", store=store)
    write_evidence(archetype, folder)
    return trial


def plan_text(archetype: Archetype) -> str:
    """The plan, in YAML."""
    tasks = ", ".join(f"{{env: Synthetic/{name}-v0, family: {name}}}" for name in FAMILIES)
    return f"""
name: SYNTHETIC {archetype.name}
tasks: [{tasks}]
policies: [{{name: {archetype.name}, factory: "synthetic:policy"}}]
episodes: {archetype.episodes}
sides: [sim, real]
metrics:
  resamples: 1000
  tolerances: {{"*": {{jerk_rms: 1.0}}}}
  price_card: {{energy: 0.2, wear: 0.8, operator: 2.0, currency: EUR}}
"""


def still() -> Trajectory:
    """A robot that stands, for a recording that claims nothing."""
    return Trajectory(
        stamp_ns=np.array([0, 10**7]),
        joint_names=("joint",),
        joint_position=np.zeros((2, 1)),
        joint_velocity=np.zeros((2, 1)),
        frames=(),
        pose_world_frame=np.zeros((2, 0, 7)),
        actions=np.zeros((1, 1)),
        rewards=np.zeros(1),
        observations=np.zeros((2, 1)),
        robot_description="",
    )


def write_evidence(archetype: Archetype, folder: Path) -> None:
    """What people and robots would note beside the episodes."""
    write(folder / "incidents.csv", "incident_id,severity,description", [])
    write(
        folder / "faults.csv",
        "fault,recovered,injected,description",
        [f"grasp_slip,{'true' if i % 12 else 'false'},true,SYNTHETIC" for i in range(60)],
    )
    (folder / "preflight.json").write_text(json.dumps({"passed": True, "robot": "SYNTHETIC"}))
    write(
        folder / "tools.csv",
        "category,drift,episodes,successes,description",
        [f"{name},mild,40,34,SYNTHETIC" for name in archetype.tools],
    )
    drifts = {2: "payload", 4: "friction", 6: "lighting", 7: "firmware"}
    write(
        folder / "checkpoints.csv",
        "time,family,capability,resources,drift,description",
        [
            f"{(START + timedelta(days=day, hours=18)).isoformat()},{family},"
            f"{0.70 + 0.015 * day:.3f},{2 * day},{drifts.get(day, '')},SYNTHETIC"
            for day in range(15)
            for family in archetype.learns
        ],
    )
    write_memory(archetype, folder)
    if archetype.gain is not None:
        write_revisions(archetype.gain, folder)
    write(
        folder / "anchors.csv",
        "axis,baseline,expert,scale,source,description",
        ["$,0.01,1,log,made-up price study,SYNTHETIC"],
    )
    if archetype.pair:
        write(
            folder / "teams.csv",
            "task,robots,episodes,successes,loop,description",
            ["carry,1,200,80,0,SYNTHETIC", f"carry,2,200,{archetype.pair},10,SYNTHETIC"],
        )
    if not archetype.grows:
        return
    played = {
        "before,needs": 40, "after,needs": 150, "before,control": 160, "after,control": 162,
        "ablated,needs": 42,
    }  # fmt: skip
    write(
        folder / "expansion.csv",
        "tool,stage,group,episodes,successes,installed_by,description",
        [f"suction cup,{stage},200,{count},policy,SYNTHETIC" for stage, count in played.items()],
    )


def write_memory(archetype: Archetype, folder: Path) -> None:
    """What is still known after days, and what is found when it is asked for."""
    known = {lag: round(100 * 0.5 ** (lag / archetype.half_life_days)) for lag in (1, 3, 7, 14)}
    found = round(100 * archetype.recall)
    write(
        folder / "retention.csv",
        "family,lag_days,trials,recalled,description",
        [
            f"{name},{lag},100,{count},SYNTHETIC"
            for name in FAMILIES
            for lag, count in known.items()
        ],
    )
    write(
        folder / "retrieval.csv",
        "family,k,queries,relevant,found,returned,verified,description",
        [f"{name},5,40,100,{found},{found + 20},{found},SYNTHETIC" for name in FAMILIES],
    )


def write_revisions(gain: float, folder: Path) -> None:
    """Two changes of the policy to itself, each beside a frozen copy, and taken back again."""
    lines = []
    for i in (1, 2):
        after = round(4000 * (0.7 + gain))
        lines.append(
            f"change {i},{(START + timedelta(days=4 * i)).isoformat()},synthetic.patch#{i},"
            f"seeds 1 to 4000,true,policy,10,10,5,4,4000,2800,{after},2800,2804,2805,SYNTHETIC"
        )
    write(
        folder / "revisions.csv",
        "revision,time,diff,holdout,resources_equal,proposed_by,edits,edits_by_policy,checks,"
        "checks_without_labels,episodes,before,after,control_before,control_after,ablated,"
        "description",
        lines,
    )


def write(path: Path, header: str, lines: list[str]) -> None:
    """A CSV file; none if there is nothing to say but in a record of incidents."""
    if lines or path.name == "incidents.csv":
        path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
