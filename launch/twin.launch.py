"""Brings the twin up: a stand-in for a robot behind its topics, and the guard before it.

    ros2 launch robo_eval_bringup twin.launch.py

For policies of your own through RoboEval/RosRobot-v0. `robo-eval run` starts these processes by
itself: end this launch first.
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from robo_eval_bringup.robot_file import in_namespace


def nodes(context: LaunchContext) -> list[Node]:
    """The processes, once the arguments are known."""
    robot = in_namespace(
        LaunchConfiguration("robot").perform(context),
        LaunchConfiguration("namespace").perform(context),
    )
    return [
        Node(
            package="robo_eval_twin",
            executable="twin",
            arguments=[robot],
            output="screen",
            respawn=False,  # a driver that comes back would forget that it was stopped
            on_exit=Shutdown(reason="the twin has ended"),
        ),
        Node(
            package="robo_eval_robot",
            executable="guard",
            arguments=[robot],
            output="screen",
            respawn=False,  # a guard that comes back would forget why it had stopped
            on_exit=Shutdown(reason="the guard has ended"),
        ),
    ]


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` runs."""
    config = Path(get_package_share_directory("robo_eval_bringup")) / "config"
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot",
                default_value=str(config / "gantry_twin.yaml"),
                description="Robot file (YAML) with `body: twin`.",
            ),
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace, such as /twin1, in place of that of the robot file.",
            ),
            OpaqueFunction(function=nodes),
        ]
    )
