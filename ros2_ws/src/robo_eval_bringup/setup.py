"""How colcon installs the launch files and the robot files."""

from pathlib import Path

from setuptools import find_packages, setup

NAME = "robo_eval_bringup"


def files(pattern: str) -> list[str]:
    """Files of this package; setuptools wants them as texts."""
    return sorted(map(str, Path().glob(pattern)))


setup(
    name=NAME,
    version="0.1.0",
    description="Launch files and robot files",
    license="Apache-2.0",
    maintainer="robo-eval maintainers",
    maintainer_email="maintainers@robo-eval.example",
    packages=find_packages(),
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
        (f"share/{NAME}/launch", files("launch/*.launch.py")),
        (f"share/{NAME}/config", files("config/*.yaml")),
    ],
    install_requires=["setuptools"],
    zip_safe=False,
)
