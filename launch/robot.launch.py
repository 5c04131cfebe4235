"""Brings up what stands before a robot's driver: the guard, and a recorder if a folder is named.

    ros2 launch robo_eval_bringup robot.launch.py robot:=/path/to/robot.yaml

Start the driver of the robot first, by its own launch file. For policies of your own through
RoboEval/RosRobot-v0. `robo-eval run` starts guard and recorder by itself: end this launch first.
"""

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
    record = LaunchConfiguration("record").perform(context)
    guard = Node(
        package="robo_eval_robot",
        executable="guard",
        arguments=[robot],
        output="screen",
        respawn=False,  # a guard that comes back would forget why it had stopped
        on_exit=Shutdown(reason="the guard has ended"),
    )
    if not record:
        return [guard]
    recorder = Node(
        package="robo_eval_robot",
        executable="recorder",
        arguments=[robot, "--root", record],
        output="screen",
        respawn=False,
    )
    return [guard, recorder]


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` runs."""
    config = get_package_share_directory("robo_eval_bringup")
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "robot",
                description=f"Robot file (YAML); examples are in {config}/config.",
            ),
            DeclareLaunchArgument(
                "namespace",
                default_value="",
                description="Namespace, such as /arm2, in place of that of the robot file.",
            ),
            DeclareLaunchArgument(
                "record",
                default_value="",
                description="Folder below which each episode is recorded; empty: no recorder.",
            ),
            OpaqueFunction(function=nodes),
        ]
    )
