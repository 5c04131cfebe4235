"""The ROS 2 packages are what colcon and launch expect, as far as it shows without ROS 2.

Launch itself cannot be installed without ROS 2: the launch files are read, and run against
stand-ins that write down what they are given. Whether launch takes it, no test here says.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final
from unittest import mock

import pytest
import yaml

from robo_eval.core.task import tasks
from robo_eval_robot.adapter import load_adapter
from robo_eval_robot.config import read_robot

REPOSITORY: Final = Path(__file__).parents[3]
SOURCES: Final = REPOSITORY / "ros2_ws/src"
PACKAGES: Final = ("robo_eval_bringup", "robo_eval_robot", "robo_eval_twin")
BRINGUP: Final = SOURCES / "robo_eval_bringup"
ROBOTS: Final = sorted((BRINGUP / "config").glob("*.yaml"))
LAUNCHES: Final = sorted((REPOSITORY / "launch").glob("*.launch.py"))
NOT_OURS: Final = ("setuptools", "python3-yaml")


def setup_of(package: str) -> dict[str, Any]:
    """What a package's setup.py tells setuptools."""
    given: dict[str, Any] = {}
    before = Path.cwd()
    os.chdir(SOURCES / package)
    try:
        with mock.patch("setuptools.setup", side_effect=lambda **keywords: given.update(keywords)):
            runpy.run_path("setup.py")
    finally:
        os.chdir(before)
    return given


def entry_points_of(package: str) -> dict[str, str]:
    scripts = setup_of(package).get("entry_points", {}).get("console_scripts", [])
    return dict(re.split(r"\s*=\s*", script, maxsplit=1) for script in scripts)


ENTRY_POINTS: Final = [
    (package, name, target)
    for package in PACKAGES
    for name, target in entry_points_of(package).items()
]


# Packages --------------------------------------------------------------------------------------


@pytest.mark.parametrize("package", PACKAGES)
def test_package_xml_is_valid_and_agrees_with_setup_py(package: str) -> None:
    catkin = pytest.importorskip("catkin_pkg.package")
    warnings: list[str] = []
    found = catkin.parse_package(str(SOURCES / package), warnings=warnings)
    found.validate(warnings=warnings)
    assert warnings == []
    assert found.get_build_type() == "ament_python"
    given = setup_of(package)
    assert (found.name, found.version) == (given["name"], given["version"])
    assert found.licenses == [given["license"]]
    assert [found.maintainers[0].name, found.maintainers[0].email] == [
        given["maintainer"],
        given["maintainer_email"],
    ]
    assert (SOURCES / package / "resource" / package).read_bytes() == b""


@pytest.mark.parametrize("package", PACKAGES)
def test_package_has_the_version_of_the_distribution(package: str) -> None:
    with (REPOSITORY / "pyproject.toml").open("rb") as file:
        assert setup_of(package)["version"] == tomllib.load(file)["project"]["version"]


@pytest.mark.parametrize("package", PACKAGES)
def test_package_xml_names_what_is_imported(package: str) -> None:
    text = (SOURCES / package / "package.xml").read_text()
    named = set(re.findall(r"<exec_depend>(.*?)</exec_depend>", text)) - set(NOT_OURS)
    files = [*(SOURCES / package / package).glob("*.py")]
    if package == "robo_eval_bringup":
        files += LAUNCHES
    imported = set().union(*(imports_of(file) for file in files))
    ros = {name for name in imported if name not in sys.stdlib_module_names} - {package}
    ros -= OF_PYTHON
    # Launch files start nodes of packages that they do not import.
    assert ros <= named
    assert named - ros <= set(PACKAGES)


OF_PYTHON = {
    "gymnasium", "mcap", "numpy", "pydantic", "rerun", "robo_eval", "robo_eval_incidents",
    "robo_eval_sim", "yaml",
}  # fmt: skip
"""What comes with the Python distribution, or with what that needs."""


def imports_of(file: Path) -> set[str]:
    """Top-level names of the modules a file imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.partition(".")[0])
    return found


@pytest.mark.parametrize(("package", "name", "target"), ENTRY_POINTS)
def test_entry_point_is_a_main_that_needs_no_arguments(
    package: str, name: str, target: str
) -> None:
    module, _, function = target.partition(":")
    file = SOURCES / package / f"{module.replace('.', '/')}.py"
    tree = ast.parse(file.read_text())
    (main,) = (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == function)
    needed = len(main.args.args) - len(main.args.defaults)
    assert (needed, len(main.args.posonlyargs)) == (0, 0)
    assert "sys.exit(main())" in file.read_text(), "python -m has to run it, too"


def test_entry_points_can_be_imported_and_refuse_to_run_without_a_robot_file() -> None:
    pytest.importorskip("rclpy")
    code = (
        "import importlib, sys\n"
        "for target in sys.argv[1:]:\n"
        "    module, _, name = target.partition(':')\n"
        "    assert callable(getattr(importlib.import_module(module), name)), target\n"
    )
    targets = [target for _, _, target in ENTRY_POINTS]
    assert len(targets) == 4
    done = run([sys.executable, "-c", code, *targets])
    assert done.returncode == 0, done.stdout


def test_the_robot_side_loads_neither_simulator_nor_torch() -> None:
    pytest.importorskip("rclpy")
    code = (
        "import importlib, pkgutil, sys, robo_eval_robot\n"
        "names = [found.name for found in pkgutil.iter_modules(robo_eval_robot.__path__)]\n"
        "assert len(names) > 10\n"
        "for name in names: importlib.import_module('robo_eval_robot.' + name)\n"
        "tops = ('pybullet', 'torch', 'robo_eval_sim', 'robo_eval_twin')\n"
        "print(*sorted(name for name in sys.modules if name.partition('.')[0] in tops))\n"
    )
    done = run([sys.executable, "-c", code])
    assert done.returncode == 0, done.stdout
    # Where the simulator is installed, importing Gymnasium loads what its tasks say of themselves.
    names = "", ".plugin", ".registration", ".tasks"
    specs = {spec.environment.rpartition(".")[0] for spec in tasks().values()}
    light = (
        {f"robo_eval_sim{name}" for name in names}
        | specs
        | {f"{one}.{own}" for one in specs for own in ("spec", "layout")}
        | {f"robo_eval_sim.arm{own}" for own in ("", ".layout", ".parts")}
    )
    assert set(done.stdout.split()) <= light


@pytest.mark.parametrize("version", [(3, 11), (3, 12)])
def test_the_robot_side_parses_on_the_pythons_of_jazzy_and_ours(version: tuple[int, int]) -> None:
    for file in (SOURCES / "robo_eval_robot/robo_eval_robot").glob("*.py"):
        ast.parse(file.read_text(), feature_version=version)


def run(command: list[str], **keywords: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
        check=False,
        **keywords,
    )


# Robot files -----------------------------------------------------------------------------------


def test_the_table_of_robot_files_is_true() -> None:
    text = (REPOSITORY / "ros2_ws/README.md").read_text()
    rows = re.findall(r"^\| `(\S+\.yaml)` \|(.*)\|$", text, re.MULTILINE)
    shown = {name: [cell.strip() for cell in rest.split("|")] for name, rest in rows}
    assert sorted(shown) == [path.name for path in ROBOTS]
    for path in ROBOTS:
        robot = read_robot(path)
        assert shown[path.name] == [
            f"`{robot.name}`",
            robot.body,
            robot.controller.interface,
            str(len(robot.commanded)),
            ", ".join(f"`{task}`" for task in robot.tasks) or "none",
        ]


@pytest.mark.parametrize("path", ROBOTS, ids=[path.name for path in ROBOTS])
def test_a_robot_file_names_no_task_it_cannot_play(path: Path) -> None:
    robot = read_robot(path)
    for task in robot.tasks:
        load_adapter(robot, task, {"balls": 0})
    if robot.body == "physical":
        assert robot.guard.estop.required
        assert robot.twin is None


# Launch files ----------------------------------------------------------------------------------


def test_bringup_installs_every_launch_file_and_robot_file() -> None:
    installed = dict(setup_of("robo_eval_bringup")["data_files"])
    shared = "share/robo_eval_bringup"
    assert installed[f"{shared}/launch"] == [f"launch/{path.name}" for path in LAUNCHES]
    assert installed[f"{shared}/config"] == [f"config/{path.name}" for path in ROBOTS]
    link = BRINGUP / "launch"
    assert link.is_symlink()
    assert not link.readlink().is_absolute()
    assert link.resolve() == REPOSITORY / "launch"
    assert not (REPOSITORY / "launch/__init__.py").exists()


@pytest.mark.parametrize("path", LAUNCHES, ids=[path.name for path in LAUNCHES])
def test_a_launch_file_uses_the_launch_api_only(path: Path) -> None:
    allowed = {"ament_index_python", "launch", "launch_ros", "pathlib", "robo_eval_bringup"}
    assert imports_of(path) <= allowed


class StandIn:
    """Writes down what a class of launch is given."""

    def __init__(self, *values: Any, **keywords: Any) -> None:
        self.values, self.keywords = values, keywords


class Argument(StandIn): ...


class Substitution(StandIn):
    def perform(self, context: dict[str, str]) -> str:
        return context[self.values[0]]


@pytest.fixture
def launch_modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand-ins in place of launch; of what a launch file may use, nothing more."""
    modules = {
        "launch": {"LaunchContext": dict, "LaunchDescription": StandIn},
        "launch.actions": {
            "DeclareLaunchArgument": Argument,
            "ExecuteProcess": StandIn,
            "OpaqueFunction": StandIn,
            "Shutdown": StandIn,
        },
        "launch.substitutions": {"LaunchConfiguration": Substitution},
        "launch_ros": {},
        "launch_ros.actions": {"Node": StandIn},
        "ament_index_python": {},
        "ament_index_python.packages": {"get_package_share_directory": lambda name: str(BRINGUP)},
        "robo_eval_bringup": {},
        "robo_eval_bringup.robot_file": vars(load_robot_file()),
    }
    for name, members in modules.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    return


def load_robot_file() -> ModuleType:
    path = BRINGUP / "robo_eval_bringup/robot_file.py"
    spec = importlib.util.spec_from_file_location("robot_file", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def described(path: Path, **given: str) -> tuple[list[Argument], list[StandIn]]:
    """Arguments a launch file declares, and the processes it makes of what is given."""
    (actions,) = runpy.run_path(str(path))["generate_launch_description"]().values
    arguments = [action for action in actions if isinstance(action, Argument)]
    (opaque,) = (action for action in actions if not isinstance(action, Argument))
    defaults = {a.values[0]: a.keywords.get("default_value") for a in arguments}
    return arguments, opaque.keywords["function"](defaults | given)


def command_of(process: StandIn) -> list[str]:
    """As `python -m` would run it; the name of an executable stands for its module."""
    if "cmd" in process.keywords:
        return process.keywords["cmd"]
    package, name = process.keywords["package"], process.keywords["executable"]
    assert name in entry_points_of(package)
    return [f"{package}/{name}", *process.keywords["arguments"]]


TWIN_FILE: Final = str(BRINGUP / "config/gantry_twin.yaml")


@pytest.mark.usefixtures("launch_modules")
def test_the_twin_is_launched_with_its_guard() -> None:
    _, processes = described(REPOSITORY / "launch/twin.launch.py")
    assert [command_of(process) for process in processes] == [
        ["robo_eval_twin/twin", TWIN_FILE],
        ["robo_eval_robot/guard", TWIN_FILE],
    ]


@pytest.mark.usefixtures("launch_modules")
def test_a_robot_is_launched_with_a_recorder_if_asked() -> None:
    path = REPOSITORY / "launch/robot.launch.py"
    _, processes = described(path, robot="my.yaml")
    assert [command_of(process) for process in processes] == [["robo_eval_robot/guard", "my.yaml"]]
    _, processes = described(path, robot="my.yaml", record="bags")
    assert command_of(processes[1]) == ["robo_eval_robot/recorder", "my.yaml", "--root", "bags"]


@pytest.mark.usefixtures("launch_modules")
def test_a_trial_is_launched_as_it_is_typed() -> None:
    from robo_eval.cli.run import run as verb

    path = REPOSITORY / "launch/trial.launch.py"
    _, (process,) = described(path, plan="p.yaml", out="runs/x")
    command = command_of(process)
    assert command == [
        *("robo-eval", "run", "p.yaml", "--out", "runs/x"),
        *("--sides", "twin", "--robot", TWIN_FILE),
    ]
    options = {word.removeprefix("--") for word in command if word.startswith("--")}
    assert options <= set(inspect.signature(verb).parameters)


@pytest.mark.usefixtures("launch_modules")
@pytest.mark.parametrize("path", LAUNCHES, ids=[path.name for path in LAUNCHES])
def test_nothing_is_launched_again_and_arguments_are_explained(path: Path) -> None:
    arguments, processes = described(path, robot="r.yaml", plan="p", out="o", record="b")
    for process in processes:
        is_safety = process.keywords.get("executable") in (None, "guard", "twin")
        assert process.keywords.get("respawn", False) is False
        assert ("on_exit" in process.keywords) == is_safety
        assert "namespace" not in process.keywords, "it comes from the robot file"
        assert process.keywords["output"] == "screen"
    for argument in arguments:
        assert argument.keywords["description"].endswith("."), argument.values[0]
    names = [argument.values[0] for argument in arguments]
    assert {"robot", "namespace"} <= set(names)
    readme = (REPOSITORY / "launch/README.md").read_text()
    (row,) = re.findall(rf"^\| `{re.escape(path.name)}` \|.*\|(.*)\|$", readme, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", row)) == sorted(names)


def test_another_namespace_is_another_robot() -> None:
    in_namespace = load_robot_file().in_namespace
    assert in_namespace(TWIN_FILE, "") == TWIN_FILE
    assert in_namespace(TWIN_FILE, "/twin0") == TWIN_FILE
    new = Path(in_namespace(TWIN_FILE, "/lab/twin1"))
    try:
        before, after = read_robot(Path(TWIN_FILE)), read_robot(new)
        assert after.namespace == "/lab/twin1"
        assert after.name == "gantry-twin-lab-twin1"
        same = {"name": before.name, "namespace": before.namespace}
        assert after.model_copy(update=same) == before
    finally:
        shutil.rmtree(new.parent)


def test_a_file_that_is_no_robot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "list.yaml"
    path.write_text(yaml.safe_dump([1]))
    with pytest.raises(ValueError, match=r"list\.yaml: is not a robot file"):
        load_robot_file().in_namespace(str(path), "/twin1")


# colcon ----------------------------------------------------------------------------------------

COLCON: Final = (
    "colcon-core",
    "colcon-bash",
    "colcon-defaults",
    "colcon-library-path",
    "colcon-metadata",
    "colcon-output",
    "colcon-package-information",
    "colcon-package-selection",
    "colcon-parallel-executor",
    "colcon-python-setup-py",
    "colcon-recursive-crawl",
    "colcon-ros",
    "colcon-test-result",
    "catkin_pkg",
    "setuptools<80",
)
"""In an environment of its own: colcon and torch want different setuptools."""


@pytest.fixture(scope="module")
def colcon(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Command line of a colcon that pip installed, with its log out of the way."""
    folder = tmp_path_factory.mktemp("colcon")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv/bin/python"
    done = run([str(python), "-m", "pip", "install", "--quiet", *COLCON])
    assert done.returncode == 0, done.stdout
    return [str(python), str(python.with_name("colcon")), "--log-base", str(folder / "log")]


@pytest.mark.slow
def test_colcon_builds_all_packages_as_ament_python(colcon: list[str], tmp_path: Path) -> None:
    listed = run([*colcon, "list", "--base-paths", str(SOURCES)])
    kinds = {tuple(line.split("\t")[::2]) for line in listed.stdout.splitlines()}
    assert kinds == {(package, "(ros.ament_python)") for package in PACKAGES}, listed.stdout
    built = run(
        [
            *(*colcon, "build", "--executor", "sequential", "--base-paths", str(SOURCES)),
            *("--build-base", str(tmp_path / "build"), "--install-base", str(tmp_path / "install")),
        ]
    )
    assert built.returncode == 0, built.stdout
    shared = tmp_path / "install/robo_eval_bringup/share/robo_eval_bringup"
    for kind, paths in (("launch", LAUNCHES), ("config", ROBOTS)):
        assert {p.name: p.read_text() for p in (shared / kind).iterdir()} == {
            p.name: p.read_text() for p in paths
        }
    for package, name, _ in ENTRY_POINTS:
        prefix = tmp_path / "install" / package
        assert (prefix / "share/ament_index/resource_index/packages" / package).exists()
        assert os.access(prefix / "lib" / package / name, os.X_OK)
    assert not list(SOURCES.glob("*/*.egg-info")), "a build leaves nothing among the sources"
    run_installed(tmp_path / "install")


def run_installed(install: Path) -> None:
    """Start what colcon installed with the Python that has rclpy; it has to refuse politely."""
    pytest.importorskip("rclpy")
    paths = [str(path) for path in install.glob("robo_eval_*/lib/python3*/site-packages")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "ROS_LOG_DIR": str(install / "ros"),
        "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST",
        "ROS_DOMAIN_ID": str(1 + os.getpid() % 100),
    }
    for package, name, _ in ENTRY_POINTS:
        script = install / package / "lib" / package / name
        done = run([sys.executable, str(script), "missing.yaml"], env=environment, cwd=install)
        assert done.returncode == 2, done.stdout
        assert "missing.yaml: no such robot file" in done.stdout
