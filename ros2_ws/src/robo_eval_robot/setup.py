"""How colcon builds this package; pip installs it as part of robo-eval-stack."""

from setuptools import find_packages, setup

NAME = "robo_eval_robot"

setup(
    name=NAME,
    version="0.1.0",
    description="Evaluates a robot: bridge, guard, recorder, conductor",
    license="Apache-2.0",
    maintainer="robo-eval maintainers",
    maintainer_email="maintainers@robo-eval.example",
    packages=find_packages(),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    zip_safe=False,
    entry_points={
        "console_scripts": [
            "guard = robo_eval_robot.guard_node:main",
            "recorder = robo_eval_robot.recorder:main",
            "view = robo_eval_robot.view:main",
        ],
    },
)
