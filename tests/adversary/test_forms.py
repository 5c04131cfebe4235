"""Forms that are made to grow, numbers beyond all measure, and code that ends the program."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from robo_eval.core import door
from robo_eval.core.errors import PlanError
from robo_eval.core.plan import parse_plan

TEN = "[" + ", ".join(["x"] * 10) + "]"
ALIASES = f"a0: &a0 {TEN}\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 8)
)
MERGES = "a0: &a0 {k: 1}\n" + "".join(
    f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}\n" for i in range(1, 8)
)
LONG_TEXTS = f"a: &a {'x' * 10_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
FORMS = {
    "aliases of aliases": (ALIASES, "too large, with its aliases written out"),
    "merged mappings": (MERGES, "too large, with its aliases written out"),
    "long texts again and again": (LONG_TEXTS, "too large, with its aliases written out"),
    "many values": (f"a: [{', '.join(['0'] * 300_000)}]", "too large"),
    "lists in lists": ("a: " + "[" * 300_000 + "]" * 300_000, "nested more than 100 deep"),
    "mappings in mappings": ("{a: " * 300_000, "nested more than 100 deep"),
    "lists by indentation": ("- " * 300_000, "nested more than 100 deep"),
    "an anchor in itself": ("a: &a [*a]", "refers to what it is part of"),
    "an anchor in its merge": ("a: &a {<<: *a}", "refers to what it is part of"),
    "a key twice": ("{a: 1, b: 2, a: 3}", "key 'a' is there twice"),
    "a key twice by its anchor": ("&x a: 1\n*x : 2\na: 3", "key 'a' is there twice"),
    "a number of many digits": ("a: " + "9" * 5000, "a number of 5000 digits"),
    "a number in sixties": ("a: " + "1:" * 9000 + "1", "a number of 18001 digits"),
    "a tag that does not fit": ("a: !!bool maybe", "does not fit its tag"),
    "a time that is none": ("a: 2026-13-99", "does not fit its tag"),
    "a tag of a program": ("a: !!python/object:os.system x", "tag"),
    "two documents": ("--- a\n--- b", "another document"),
    "a NUL": ("a: \0", "control characters"),
    "half a surrogate": ('a: "\\ud800"', "Unicode"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_a_form_that_grows_is_refused_at_one_door(name):
    text, reason = FORMS[name]
    with pytest.raises(PlanError, match=rf"^f\.yaml: not valid YAML[^\n]*{reason}[^\n]*$"):
        door.yaml_of(text, "f.yaml")


def test_aliases_and_merged_mappings_of_a_sound_form_are_kept():
    text = "base: &b {x: 1, y: [1, 2]}\nown: {<<: *b, x: 3}\nagain: *b\nlist: [*b, *b]\n"
    found = door.yaml_of(text, "f")
    assert found["own"] == {"x": 3, "y": [1, 2]}
    assert found["list"] == [found["base"]] * 2
    assert door.yaml_of("a: yes\nb: 1e3\nc: 0x1F", "f", as_texts=True) == {
        "a": "yes", "b": "1e3", "c": "0x1F",
    }  # fmt: skip
    assert len(door.yaml_of(f"a: [{', '.join(map(str, range(50_000)))}]", "f")["a"]) == 50_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a." * 300_000 + "a = 1", "a key is nested more than 100 deep"),
        ("[" + "a." * 300_000 + "a]", "a key is nested more than 100 deep"),
        ("x = {" + "a." * 300_000 + "a = 1}", "a key is nested more than 100 deep"),
        ("a = " + "[" * 300_000, "nested too deep"),
        ("a = " + "{b = " * 300_000, "nested too deep"),
        ("a = " + "9" * 5000, "digits"),
        ("# " + "x" * 3_000_000, "too large"),
    ],
)
def test_toml_that_takes_for_ever_is_refused(text, reason):
    with pytest.raises(ValueError, match=reason):
        door.toml_of(text)
    assert door.toml_of("a = [" + "1.5, " * 500 + "]")["a"] == [1.5] * 500


@pytest.mark.parametrize(
    "call",
    [
        "run bomb.yaml --out out",
        "metrics trial --config bomb.yaml",
        "report trial --config bomb.yaml",
        "assess trial --config bomb.yaml",
        "compare trial --config bomb.yaml",
        "import csv table.csv --map bomb.yaml --out out",
        "import bag trial/traces --map bomb.yaml --out out",
        "aiq run bomb.yaml --out out",
        "doctor bomb.yaml",
    ],
)
@pytest.mark.parametrize("bomb", [ALIASES, MERGES], ids=["aliases", "merged"])
def test_every_verb_has_that_door(lab, calm, call, bomb):
    if call.startswith("doctor"):
        pytest.importorskip("rclpy")
    (lab / "bomb.yaml").write_text(bomb)
    done = calm(*call.split(), folder=lab)
    assert done.code == 2
    assert "bomb.yaml: not valid YAML" in done.err
    assert not (lab / "out").exists()


PLAN = """
name: x
tasks: [{levels: [0]@task}]
policies: [nothing, balancer]
@more
"""


@pytest.mark.parametrize(
    ("task", "more", "field"),
    [
        ("", "stopping: {compare: [nothing, balancer], alpha: 1e-320}", "stopping.alpha"),
        ("", "stopping: {compare: [nothing, balancer], alpha: 1.0e-310}", "stopping.alpha"),
        ("", "stopping: {compare: [nothing], rate: 5.0e-324}", "stopping.rate"),
        (", quality_range: [-1.0e+308, 1.0e+308]", "", "tasks.0.quality_range.0"),
        (", quality_range: [0, 1.0e-320]", "", "tasks.0.quality_range.1"),
        (", quality_range: [.nan, 1]", "", "tasks.0.quality_range.0"),
        (", quality_range: [0, .inf]", "", "tasks.0.quality_range.1"),
        (", success_quality: 1.0e-320", "", "tasks.0.success_quality"),
        (f", max_ticks: 1{'0' * 99}1", "", ""),
        ("", "metrics: {price_card: {energy: 1.0e+308}}", "metrics.price_card.energy"),
        ("", "metrics: {severity_weights: {major: 1.0e+200}}", "metrics.severity_weights.major"),
        ("", "metrics: {tolerances: {f: {rms: 1.0e-320}}}", "metrics.tolerances.f.rms"),
        ("", "metrics: {level: 0.9999999999999999}", "metrics.level"),
        ("", "metrics: {level: 1.0e-99}", "metrics.level"),
        ("", "judging: {second_share: 1.0e-320}", "judging.second_share"),
    ],
)
def test_a_number_beyond_all_measure_is_refused_by_its_field(task, more, field):
    text = PLAN.replace("@task", task).replace("@more", more)
    with pytest.raises(PlanError, match=rf"^p\.yaml: {field}"):
        parse_plan(text, source="p.yaml")


def test_what_goes_to_other_code_may_be_any_number():
    text = PLAN.replace("@task", ", kwargs: {tiny: 1.0e-320, huge: 1.0e+300}").replace("@more", "")
    assert parse_plan(text, source="p").tasks[0].kwargs == {"tiny": 1e-320, "huge": 1e300}


@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError('why')", "raise BaseException('why')", "raise SystemExit",
        "import sys; sys.exit(0)", "import sys; sys.exit(3)", "import sys; sys.exit('why')",
        "raise MemoryError", "return f()", "raise BrokenPipeError(32, 'why')",
        "raise ImportError('a\\nb')", "return None",
        "raise type('Odd', (Exception,), {'__str__': 1})",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["called", "imported"])
def test_a_factory_that_ends_the_program_is_named(lab, calm, body, place):
    text = f"def f():\n    {body}\n" + ("f()\n" if place == "imported" else "")
    (lab / "odd.py").write_text(text)
    (lab / "odd.yaml").write_text(
        "name: x\ntasks: [{levels: [0]}]\npolicies: [{name: a, factory: 'odd:f'}]\nepisodes: 1\n"
    )
    done = calm("run", "odd.yaml", "--out", "out", folder=lab)
    assert done.code == 2, done
    assert "odd.yaml: policies.0.factory: policy 'a': factory 'odd:f'" in done.err
    assert not (lab / "out").exists()


def test_a_trial_is_not_compared_with_its_copy(lab, calm):
    shutil.copytree(lab / "trial", lab / "copy")
    done = calm("compare", "trial", "copy", folder=lab)
    assert done.code == 2
    assert "copy: holds the rows of trial, one is a copy of the other" in done.err


def test_two_runs_of_one_plan_are_no_copies(lab, calm):
    calm("run", "plan.yaml", "--out", "again", "--no-report", "-j", "1", folder=lab)
    assert calm("compare", "trial", "again", folder=lab).code == 0


@pytest.mark.parametrize("name", ["\udcff", "\udcff.csv", "a/\udce9", "x" * 300, "a\nb"])
def test_names_that_are_no_text(lab, calm, name):
    (lab / "a").mkdir()
    done = calm("run", "plan.yaml", "--out", name, "--no-report", "-j", "1", folder=lab)
    assert done.code == (2 if len(name) > 255 else 0), done
    if done.code == 0:
        assert calm("verify", name, "--json", folder=lab).code == 0
        assert calm("metrics", name, "--json", folder=lab).code == 0


@pytest.mark.parametrize("words", ["x" * 400_000, "word " * 80_000])
def test_a_message_has_an_end(lab, calm, words):
    text = (lab / "plan.yaml").read_text().replace("levels", f"env: '{words}', levels")
    (lab / "long.yaml").write_text(text)
    assert calm("run", "long.yaml", "--out", "out", folder=lab).code == 2


def test_a_file_is_only_read_as_one(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(door.LARGEST + 1)
    assert len(door.bytes_of(path)) == door.LARGEST + 1
    with pytest.raises(OSError, match="is too large: such a file has at most 2 MB"):
        door.written(path)
    with pytest.raises(OSError, match="is a device, not a file"):
        door.bytes_of(Path("/dev/null"))
