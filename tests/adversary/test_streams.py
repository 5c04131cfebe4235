"""Standard streams that are closed, full or not read to their end."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys

import pytest

COMMAND = f"{shlex.quote(sys.executable)} -m robo_eval"


def shell(command: str, folder, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command.replace("robo-eval", COMMAND)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **environment},
    )


@pytest.mark.parametrize(
    ("command", "codes"),
    [
        ("robo-eval levels | head -1", (0, 141)),
        ("robo-eval levels --json | head -1", (0, 141)),
        ("robo-eval levels | true", (0, 141)),
        ("robo-eval verify trial | true", (0, 141)),
        ("robo-eval metrics trial --json | true", (0, 141)),
        ("robo-eval --help | true", (0, 141)),
        ("robo-eval levels >&-", (0,)),
        ("robo-eval levels --json >&-", (0,)),
        ("robo-eval metrics trial --json >&- 2>&- <&-", (0,)),
        ("robo-eval export trial --out o.csv >&-", (0,)),
        ("robo-eval levels 2>&-", (0,)),
        ("robo-eval levels >/dev/full", (2,)),
        ("robo-eval levels --json >/dev/full", (2,)),
        ("robo-eval levels >/dev/full 2>/dev/full", (2,)),
        ("robo-eval metrics nowhere 2>/dev/full", (2,)),
        ("robo-eval metrics nowhere 2>&-", (2,)),
        ("robo-eval metrics nowhere >&-", (2,)),
        ("robo-eval metrics nowhere 2>&1 | true", (2, 141)),
    ],
)
def test_a_stream_that_takes_nothing(lab, command, codes):
    done = shell(command, lab)
    assert done.returncode in codes, done
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert len(done.stderr.splitlines()) <= 1, done
    if "nowhere" in command and ">&-" in command and "2>&-" not in command:
        assert done.stderr == "robo-eval: nowhere: no such trial directory\n"


def test_what_goes_to_a_closed_stream_goes_into_no_file(lab):
    before = (lab / "trial/episodes.db").read_bytes()
    assert shell("robo-eval verify trial >&- 2>&-", lab).returncode == 0
    assert (lab / "trial/episodes.db").read_bytes() == before
    assert shell("robo-eval verify trial", lab).returncode == 0


def test_letters_that_a_stream_does_not_know(lab):
    (lab / "trial").rename(lab / "trial é")
    done = shell("robo-eval verify 'trial é' --json", lab, PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["trial"] == "trial é"
    assert shell("robo-eval verify 'trial é'", lab, PYTHONIOENCODING="ascii").returncode == 0


def test_a_traceback_is_shown_to_who_asks(lab):
    quiet = shell("robo-eval metrics nowhere", lab)
    told = shell("robo-eval metrics nowhere", lab, ROBO_EVAL_TRACEBACK="1")
    assert "Traceback" not in quiet.stderr
    assert "Traceback" in told.stderr
    assert told.stderr.endswith(quiet.stderr)
    assert (quiet.returncode, told.returncode) == (2, 2)


def test_what_nobody_thought_of_is_one_line(lab):
    (lab / "sitecustomize.py").write_text(
        "import json\n\ndef fail(*_, **__):\n    raise {error}\n\njson.dump = fail\n"
    )
    for error, words in (
        ("LookupError('why\\nnot')", "LookupError: why not"),
        ("RecursionError('deep')", "RecursionError: deep"),
        ("MemoryError", "not enough memory"),
        ("UnicodeEncodeError('ascii', 'x', 0, 1, 'why')", "UnicodeEncodeError"),
        ("OSError(5, 'Input/output error', 'disk')", "disk: Input/output error"),
        ("__import__('sqlite3').OperationalError('why')", "OperationalError: why"),
        ("type('Own', (BaseException,), {})('why')", "Own: why"),
        ("SystemExit('why')", "SystemExit: why"),
        ("SystemExit(77)", "SystemExit: 77"),
        ("SystemExit(0)", "SystemExit: 0"),
        ("SystemExit", "ended the program: SystemExit"),
    ):
        text = (lab / "sitecustomize.py").read_text()
        (lab / "sitecustomize.py").write_text(text.replace("{error}", error))
        done = shell("robo-eval levels --json", lab, PYTHONPATH=str(lab))
        (lab / "sitecustomize.py").write_text(text)
        assert done.returncode == 2, (error, done)
        assert words in done.stderr, (error, done)
        assert len(done.stderr.splitlines()) == 1, (error, done)
    (lab / "sitecustomize.py").write_text(text.replace("{error}", "KeyboardInterrupt"))
    assert shell("robo-eval levels --json", lab, PYTHONPATH=str(lab)).returncode == 3
