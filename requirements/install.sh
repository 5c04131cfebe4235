#!/usr/bin/env bash
# Creates .venv if need be and installs one of the locks and this checkout into it with plain pip.
#
# Usage: requirements/install.sh demo|dev STAMP
# STAMP is a file written when all went well; it marks what is installed, see the Makefile.
# PYTHON names the interpreter to build .venv from; the default is the first that is there.
set -euo pipefail
cd "$(dirname "$0")/.."

lock=$1
stamp=$2

say() { printf '%s\n' "$*" >&2; }

is_usable() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        if is_usable "$PYTHON"; then echo "$PYTHON" && return; fi
        say "error: PYTHON=$PYTHON is not a Python of version 3.11, 3.12 or 3.13"
        exit 2
    fi
    local candidate
    for candidate in python3.11 python3.12 python3.13 python3 python; do
        if is_usable "$candidate"; then echo "$candidate" && return; fi
    done
    say "error: no Python of version 3.11, 3.12 or 3.13 was found: install one, on Debian and Ubuntu"
    say "       by \`apt-get install python3 python3-venv\`, or name it:"
    say "       make PYTHON=/path/to/python3.12 $lock"
    exit 2
}

if ! is_usable .venv/bin/python; then
    python=$(find_python)
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    say "Creating .venv with Python $version"
    rm -rf .venv
    if ! "$python" -m venv .venv >.venv-error.log 2>&1; then
        rm -rf .venv
        if "$python" -m pip --version >/dev/null 2>&1; then
            "$python" -m venv --without-pip .venv
        else
            cat .venv-error.log >&2
            rm -f .venv-error.log
            say "error: this Python can neither create a virtual environment nor run pip;"
            say "       on Debian and Ubuntu: apt-get install python$version-venv"
            exit 2
        fi
    fi
    rm -f .venv-error.log
fi

venv=.venv/bin/python
pip=("$venv" -m pip)
if ! "$venv" -m pip --version >/dev/null 2>&1; then
    if ! "$venv" -m ensurepip >/dev/null 2>&1; then
        pip=("$(find_python)" -m pip --python "$venv")
    fi
fi
# Byte code is left to the first import: most of what is installed is never imported.
options=(--disable-pip-version-check --no-input --no-compile --retries 5 --progress-bar off -qq)

say "Installing the pinned dependencies of requirements/$lock.txt"
if [ "$lock" = demo ]; then
    say "(a download of some 330 MB the first time; a minute on a fast line)"
fi
started=$SECONDS
# The demo drives a twin through ROS 2 where its packages can be had, and says so where not.
if [ "$lock" = demo ] && "${pip[@]}" install "${options[@]}" --require-hashes -r requirements/ros.txt
then
    :
else
    if [ "$lock" = demo ]; then
        say "note: the ROS 2 packages cannot be installed here; the simulated half runs without them"
    fi
    "${pip[@]}" install "${options[@]}" --require-hashes -r "requirements/$lock.txt"
fi
"${pip[@]}" install "${options[@]}" --no-deps --no-build-isolation --editable .
say "Installed in $((SECONDS - started)) s"

mkdir -p "$(dirname "$stamp")"
rm -f "$(dirname "$stamp")/$lock-"*
: >"$stamp"
