#!/usr/bin/env bash
# Writes demo.txt and dev.txt: every dependency at one version, with the digest of each file.
#
# Run it as `make lock` after changing the dependencies in pyproject.toml; `make lock UPGRADE=1`
# also moves every other dependency to its newest version. One version serves Python 3.11 to 3.13,
# so that results do not depend on which of them is installed; only PyBullet comes from a fork there.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-.venv/bin/python}
tools=build/lock-tools
if [ ! -d "$tools/uv" ]; then
    "$python" -m pip install --quiet --disable-pip-version-check --target "$tools" "uv>=0.5"
fi

compile() {
    local output=$1
    shift
    PYTHONPATH=$tools "$python" -m uv pip compile --quiet --universal --python-version 3.11 \
        --fork-strategy fewest --generate-hashes --no-emit-index-url --no-header \
        ${UPGRADE:+--upgrade} --output-file "requirements/$output" "$@"
    sed -i '1i # Written by `make lock`; do not edit.' "requirements/$output"
    echo "requirements/$output: $(grep -c '^[a-z].*==' "requirements/$output") distributions"
}

compile demo.txt pyproject.toml requirements/build.in --extra sim
compile ros.txt pyproject.toml requirements/build.in \
    --extra sim --extra ros --constraint requirements/demo.txt
compile dev.txt pyproject.toml requirements/build.in \
    --extra sim --extra ros --extra dev --constraint requirements/ros.txt
