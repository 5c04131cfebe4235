"""Plays a plan on a robot or its twin: `robo-eval run`, which starts guard and recorder.

    ros2 launch robo_eval_bringup trial.launch.py plan:=plan.yaml out:=runs/first

`robo-eval` must be on the path. Nobody can be asked anything below a launch: for a robot whose
episodes a person sets up, run `robo-eval run` in a terminal, or give `prefix:="xterm -e"`.
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration

from robo_eval_bringup.robot_file import in_namespace


def trial(context: LaunchContext) -> list[ExecuteProcess]:
    """The process, once the arguments are known."""
    given = {
        name: LaunchConfiguration(name).perform(context)
        for name in ("plan", "out", "sides", "robot", "namespace", "prefix")
    }
    robot = in_namespace(given["robot"], given["namespace"])
    return [
        ExecuteProcess(
            cmd=[
                *("robo-eval", "run", given["plan"], "--out", given["out"]),
                *("--sides", given["sides"], "--robot", robot),
            ],
            prefix=given["prefix"] or None,
            output="screen",
            # On Ctrl-C the robot is stopped, the bag closed and the row committed first.
            sigterm_timeout="20",
            sigkill_timeout="10",
            on_exit=Shutdown(reason="the trial has ended"),
        )
    ]


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` runs."""
    config = Path(get_package_share_directory("robo_eval_bringup")) / "config"
    return LaunchDescription(
        [
            DeclareLaunchArgument("plan", description="Plan file (YAML)."),
            DeclareLaunchArgument("out", description="Trial directory to create."),
            DeclareLaunchArgument(
                "sides",
                default_value="twin",
                description="Sides to play: `twin`, `sim,twin`, or `real`.",
            ),
            DeclareLaunchArgument(
                "robot",
                default_value=str(config / "gantry_twin.yaml"),
                description="Robot file (YAML).",
            ),
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace, such as /twin1, in place of that of the robot file.",
            ),
            DeclareLaunchArgument(
                "prefix",
                default_value="",
                description="What to start it with, such as `xterm -e` to be asked things.",
            ),
            OpaqueFunction(function=trial),
        ]
    )
