"""How colcon builds this package; pip installs it as part of robo-eval-stack."""

from setuptools import find_packages, setup

NAME = "robo_eval_twin"

setup(
    name=NAME,
    version="0.1.0",
    description="A stand-in for a robot, with perturbed physics behind its topics",
    license="Apache-2.0",
    maintainer="robo-eval maintainers",
    maintainer_email="maintainers@robo-eval.example",
    packages=find_packages(),
    package_data={NAME: ["*.yaml"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (f"share/{NAME}", ["package.xml"]),
    ],
    install_requires=["setuptools"],
    zip_safe=False,
    entry_points={"console_scripts": ["twin = robo_eval_twin.twin_node:main"]},
)
