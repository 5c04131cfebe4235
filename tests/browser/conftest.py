"""A real trial with its report, and a real browser that may not use the network."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

# `ROBO_EVAL_REQUIRE_ALL` turns each skip below into a failure, see tests/conftest.py.
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

PATIENCE_MS = 120_000
"""For whatever a page does sooner on a machine that is not busy."""
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PLAN = """
name: "Trial <script>window.harmed = 1</script> & more"
description: "A <b>small</b> trial the browser tests look at."
tasks: [{levels: [0, 1, 4], difficulties: [easy, hard], family: balancing}]
policies: [random, balancer, adaptive]
episodes: 3
control: true
"""

FEW = """
name: Few levels, five policies with names
tasks: [{levels: [0, 1], difficulties: [hard], family: balancing}]
policies:
  - random
  - balancer
  - name: balancer-with-a-long-name-v2.1.0-rc1
    factory: "robo_eval.agents.cartpole3d.balancer:Balancer"
  - {name: firm, factory: "robo_eval.analysis.panel.controllers:PanelController",
     kwargs: {rate_gain: 0.35}}
  - nothing
episodes: 3
control: true
"""

MARKS = """element => ({
  paths: [...element.querySelectorAll('.scatterlayer path, .barlayer path')].filter(p => {
    const box = p.getBoundingClientRect(); return box.width + box.height > 1; }).length,
  images: [...element.querySelectorAll('.heatmaplayer image')].filter(i =>
    (i.getAttribute('href') ?? i.getAttribute('xlink:href')).length > 200).length,
  texts: [...element.querySelectorAll('svg text')].filter(t => t.textContent).length,
  cut: [...element.querySelectorAll('.main-svg text')].filter(t => {
    const box = t.getBoundingClientRect(), all = element.getBoundingClientRect();
    return t.textContent && box.width && (box.left < all.left - 1 || box.right > all.right + 1);
  }).map(t => t.textContent),
})"""
INK = """canvas => {
  const copy = document.createElement('canvas');
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const pen = copy.getContext('2d', { willReadFrequently: true });
  pen.drawImage(canvas, 0, 0);
  const data = pen.getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) seen.add((data[i] << 16) | (data[i+1] << 8) | data[i+2]);
  return [seen.size, data.reduce((sum, value, i) => (sum + value * (i % 9973)) % 2147483647, 0)];
}"""
# Texts of a chart that lie on each other, a pixel or two of their boxes aside.
OVERLAPS = """() => [...document.querySelectorAll('.chart')].flatMap(chart => {
  const texts = [...chart.querySelectorAll('.main-svg text')]
    .filter(t => t.textContent.trim() && t.getBoundingClientRect().width)
    .map(t => [t.textContent, t.getBoundingClientRect()]);
  return texts.flatMap(([first, a], i) => texts.slice(i + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3
  ).map(([second]) => `${chart.dataset.figure}: ${first} / ${second}`));
})"""
CUT = """() => [...document.querySelectorAll('main *')].filter(e => {
  const box = e.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && !e.closest('.scroll, svg, .skip, pre, thead');
}).map(e => e.outerHTML.slice(0, 80))"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def played(folder: Path, plan: str, verb: str, name: str) -> Path:
    """A trial that a verb of the command line plays in a folder."""
    (folder / "plan.yaml").write_text(plan, encoding="utf-8")
    command = [sys.executable, "-m", "robo_eval", verb, "plan.yaml", "--out", name]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=800)
    assert done.returncode == 0, done.stderr
    return folder / name


@pytest.fixture(scope="session")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one trial that was played to its end, and its report."""
    pytest.importorskip("pybullet", reason="the simulator is not installed: pip install .[sim]")
    folder = tmp_path_factory.mktemp("trials")
    played(folder, PLAN, "run", "small")
    return folder


@pytest.fixture(scope="session")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Trials that are not as they should be, each with its report, and an index over them.

    `few` has one novelty level and a member of the reference panel, `changed` is `few` with a
    changed row, `killed` ended after 3 episodes, and `empty` before the first.
    """
    pytest.importorskip("pybullet", reason="the simulator is not installed: pip install .[sim]")
    from robo_eval.core.plan import parse_plan
    from robo_eval.log.directory import TrialDirectory
    from robo_eval.log.store import EpisodeStore
    from robo_eval.report.build import build_report
    from robo_eval.report.index import build_index

    folder = tmp_path_factory.mktemp("odd")
    played(folder, FEW, "run", "few")
    shutil.copytree(folder / "few", folder / "changed")
    with closing(sqlite3.connect(folder / "changed" / "episodes.db")) as database, database:
        database.execute("UPDATE episodes SET duration_s = 3.5 WHERE sequence = 7")
    plan = parse_plan(FEW, source="plan")
    for name, rows in (("killed", 3), ("empty", 0)):
        trial = TrialDirectory.create(folder / name, plan)
        with (
            EpisodeStore(folder / "few", durable=False, read_only=True) as source,
            EpisodeStore(trial.path, durable=False) as store,
        ):
            store.append(list(islice(source.episodes(), rows)))
    for name in ("changed", "killed", "empty"):
        build_report(TrialDirectory.open(folder / name))
    build_index(folder)
    return folder


@pytest.fixture(scope="session")
def page_file(trials: Path) -> Path:
    """The report of the trial."""
    return trials / "small" / "report" / "index.html"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's Chromium."""
    found = os.environ.get("ROBO_EVAL_CHROMIUM") or shutil.which("chromium")
    if not found:
        pytest.skip("no chromium; apt-get install chromium, or name it in ROBO_EVAL_CHROMIUM")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclass
class Opened:
    """A page, and what it said and asked for."""

    page: Any
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def chart(self, name: str) -> Any:
        """The chart of a figure."""
        return self.page.locator(f".chart[data-figure={name}]")

    def assert_fits(self) -> None:
        """Nothing was complained of, nothing reaches beyond the page, no text lies on another."""
        assert self.messages == []
        assert self.page.evaluate(OVERFLOW) <= 0
        assert self.page.evaluate(CUT) == []
        assert self.page.evaluate(OVERLAPS) == []

    def on_paper(self) -> Any:
        """Lay the page out for paper, A4 between the margins; returns it."""
        self.page.emulate_media(media="print")
        self.page.set_viewport_size({"width": 695, "height": 1000})
        self.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        self.page.wait_for_timeout(500)  # the charts are drawn anew in the width of the paper
        return self.page


def open_page(
    browser: Any,
    stack: ExitStack,
    file: Path,
    *,
    width: int = 1300,
    script: str = "",
    **options: Any,
) -> Opened:
    """Open a file in a fresh context without network and wait until all of it is drawn."""
    context = browser.new_context(
        viewport={"width": width, "height": 900}, offline=True, accept_downloads=True, **options
    )
    stack.callback(context.close)
    context.set_default_timeout(PATIENCE_MS)
    opened = Opened(page=context.new_page())
    opened.page.on("console", lambda message: opened.messages.append(message.text))
    opened.page.on("pageerror", lambda error: opened.messages.append(str(error)))
    opened.page.on("request", lambda request: opened.requests.append(request.url))
    if script:
        opened.page.add_init_script(script)
    opened.page.goto(file.as_uri())
    if options.get("java_script_enabled", True) and "report" in file.parts:
        # Waited for as an element: the page's policy forbids evaluating texts.
        ready = opened.page.locator("html[data-ready=yes]")
        ready.wait_for(state="attached")
    return opened


@pytest.fixture
def look(chromium: Any) -> Iterator[Callable[..., Opened]]:
    """Opens files, each in a context of its own."""
    with ExitStack() as stack:
        yield lambda file, **options: open_page(chromium, stack, file, **options)


@pytest.fixture(scope="session")
def shown(chromium: Any) -> Iterator[Callable[..., Opened]]:
    """Files on screens of some width, each opened once for all tests that change nothing."""
    with ExitStack() as stack:

        @cache
        def show(file: Path, width: int, scheme: str) -> Opened:
            return open_page(chromium, stack, file, width=width, color_scheme=scheme)

        yield show


@pytest.fixture(scope="session")
def wide(shown: Callable[..., Opened], page_file: Path) -> Opened:
    """The report on a wide, light screen, shared by tests that do not mind its state."""
    return shown(page_file, 1300, "light")


ARM = """
name: arm
tasks:
  - env: RoboEval/PickPlace-v0
    family: picking
    axes: {object_noise: [0.01, 0.014, 0.018], payload: [9, 11, 12]}
    pairs: [[object_noise, payload]]
policies:
  - pick-place
  - name: without-any-second-attempt
    factory: robo_eval.agents.arm.pick_place:PickPlace
    kwargs: {recovers: false}
episodes: 4
metrics: {resamples: 200}
"""


@pytest.fixture(scope="session")
def arm_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a trial of an arm over magnitudes of novelty."""
    pytest.importorskip("pybullet", reason="the simulator is not installed: pip install .[sim]")
    folder = tmp_path_factory.mktemp("arm")
    return played(folder, ARM, "dose", "trial") / "report" / "index.html"


ROBOT_MAP = (
    "columns: {episode_id: trial, side: where, success: ok, pair_id: pair, policy: who, task: kind}"
)


@pytest.fixture(scope="session")
def robot_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of imported pairs of a robot, a twin and a simulator; needs no simulator."""
    from robo_eval.log.importer import import_csv
    from robo_eval.report.build import build_report

    folder = tmp_path_factory.mktemp("robot")
    lines = ["trial,where,ok,pair,who,kind"]
    for who, side in (("ours", "real"), ("a-policy-with-a-long-name-v2", "twin")):
        for kind, less in (("pick and place", 0), ("place in the upper drawer", 4)):
            for i in range(20):
                key = f"{who}-{kind}-{i}"
                lines.append(f"r-{key},{side},{int(i < 14 - less)},{key},{who},{kind}")
                lines.append(f"s-{key},sim,{int(i < 16)},{key},{who},{kind}")
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(ROBOT_MAP, encoding="utf-8")
    return build_report(import_csv(folder / "lab.csv", folder / "map.yaml", folder / "trial"))


LAB_MAP = """
columns:
  episode_id: trial
  side: where
  success: ok
  end_reason: end
  end_detail: why
  pair_id: pair
  policy: who
  task: kind
  level: level
  exposure_s: {column: seconds, unit: s}
  control_quality.position_error_mm: error
  control_quality.peak_force_n: force
"""
LAB_POLICIES = {"ours": 1, "a-policy-with-a-long-name-v2": 4}


@pytest.fixture(scope="session")
def lab_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of an imported trial of a robot with evidence of all kinds; no simulator needed.

    Two policies play two tasks on three levels, ten pairs each. A few attempts are void, one
    incident is noted for an episode that is not there, and one value is far beyond its tolerance.
    """
    from robo_eval.log.importer import import_csv
    from robo_eval.metrics.config import MetricConfig
    from robo_eval.report.build import build_report

    folder = tmp_path_factory.mktemp("lab")
    lines = ["trial,where,ok,end,why,pair,who,kind,level,seconds,error,force"]
    faults = ["fault,recovered,recovered_by,episode_id"]
    ratings = ["episode_id,rater,success,blind"]
    for who, least in LAB_POLICIES.items():
        for kind in ("pick and place", "place in the upper drawer"):
            for level in (0, 1, 4):
                for i in range(10):
                    key = f"{who}-{kind}-{level}-{i}"
                    tail = f"{key},{who},{kind},{level}"
                    ok = int(i >= least + level // 2)
                    ends = ("failure", "success")
                    end = ",void,power cut" if i == 9 and level else f"{ok},{ends[ok]},"
                    sim = int(i >= least)
                    measured = f"{1.1 * i},{'80' if i == 3 else 12 + i}"
                    lines.append(f"p-{key},real,{end},{tail},200,{measured}")
                    lines.append(f"s-{key},sim,{sim},{ends[sim]},,{tail},,,")
                    if i % 4 == 1:
                        name = ("grasp_slip", "object_displaced_by_the_gripper")[i > 4]
                        faults.append(f"{name},{'yes' if ok else 'no'},robot,p-{key}")
                    if i < 2:
                        ratings.append(f"p-{key},second,{ok},yes")
    first = "p-ours-pick and place-0-0"
    incidents = ["incident_id,severity,episode_id", f"i1,near_miss,{first}", "i2,minor,nowhere"]
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(LAB_MAP, encoding="utf-8")
    trial = import_csv(folder / "lab.csv", folder / "map.yaml", folder / "trial")
    for name, rows in (("incidents", incidents), ("faults", faults), ("ratings", ratings)):
        (trial.path / f"{name}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    config = MetricConfig(
        resamples=200,
        tolerances={"*": {"position_error_mm": 5.0, "peak_force_n": 20.0}},
        price_card={"energy": 0.6, "wear": 3.0, "consumables": 1.5, "operator": 22.0},
        currency="EUR",
    )
    return build_report(trial, config=config)


LEVELS_MAP = """
columns:
  episode_id: trial
  side: where
  quality: good
  success: ok
  pair_id: pair
  policy: who
  task: kind
  interventions: helped
  uninterrupted_actions: actions
  plan_depth: depth
"""
HELPED = {"alone": (0.5, 0), "a-policy-with-a-long-name-that-is-helped": (0.9, 4)}
"""Mean quality and interventions of each policy."""


@pytest.fixture(scope="session")
def levels_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of two policies with axes, checkpoints under drift, and a frontier that falls."""
    from robo_eval.log.importer import import_csv
    from robo_eval.report.build import build_report

    folder = tmp_path_factory.mktemp("levels")
    lines = ["trial,where,good,ok,pair,who,kind,helped,actions,depth"]
    points = ["policy,time,family,capability,resources,drift,human_patches"]
    drifts = {2: "payload", 5: "firmware of the controllers of the joints", 6: "lighting"}
    for who, (quality, helped) in HELPED.items():
        for kind in ("pick and place", "place in the upper drawer"):
            for i in range(30):
                key = f"{who}-{kind}-{i}"
                tail = f"{key},{who},{kind}"
                good = quality + 0.01 * (i % 5)
                ok = int(i % 2 and not helped)
                lines.append(f"r-{key},real,{good},{ok},{tail},{helped},{30 + i},6")
                lines.append(f"s-{key},sim,{good},{i % 2},{tail},0,40,6")
            points += [
                f"{who},2026-03-{day + 1:02}T12:00:00+00:00,{kind},{0.4 + 0.02 * day},{2 * day},"
                f"{drifts.get(day, '')},{int(day == 9)}"
                for day in range(20)
            ]
    (folder / "lab.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "map.yaml").write_text(LEVELS_MAP, encoding="utf-8")
    trial = import_csv(folder / "lab.csv", folder / "map.yaml", folder / "trial")
    (trial.path / "checkpoints.csv").write_text("\n".join(points) + "\n", encoding="utf-8")
    (trial.path / "incidents.csv").write_text("incident_id,severity\n", encoding="utf-8")
    return build_report(trial)
