"""Profiles of one's own: a copy works, and a mistake in it is one line that says where."""

from __future__ import annotations

from pathlib import Path

import pytest

from robo_eval.core.errors import InputError
from robo_eval.core.estimate import Estimate
from robo_eval.gates import QUANTITIES, Audit, assess, load_profile, profiles
from robo_eval.gates.profile import AUDITS, FOLDER
from robo_eval.gates.readings import Readings
from robo_eval.metrics import registry
from robo_eval.metrics.registry import names

TEXT = (FOLDER / "robotics.toml").read_text(encoding="utf-8")
MAJOR = 'test = "zero"\nthresholds = { 2 = 0, 3 = 0, 4 = 0 }'
FAMILIES = '2 = 1, 3 = 3, 4 = "all"'
DAYS = "days = { 2 = 7, 3 = 7, 4 = 30 }"


def refused(path: Path, text: str | bytes) -> str:
    """What is said of a profile that cannot be used."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError) as caught:
        load_profile(path)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert len(said.splitlines()) == 1
    return said


def test_the_robotics_profile_is_complete():
    assert profiles() == ["general", "robotics"]
    found = load_profile("robotics")
    assert {level for gate in found.gates.values() for level in gate.thresholds} == {1, 2, 3, 4}
    assert {gate.reads for gate in found.gates.values()} <= {*QUANTITIES, *names(for_gates=True)}
    assert found.highest_without_robot == 1
    for name, asked in (("ar", [0.8, 0.9, 0.97]), ("s2r", [0.75, 0.85, 0.92]),
                        ("ss", [0.8, 0.9, 0.95]), ("e", [0.75, 0.85, 0.92]),
                        ("minor", [1.0, 0.5, 0.2]), ("exposure", [100, 500, 1000])):  # fmt: skip
        assert [found.gates[name].thresholds[level] for level in (2, 3, 4)] == asked
    assert found.gates["kappa"].thresholds == {2: 1, 3: 2, 4: "half"}
    for name in ("ar_families", "s2r_families"):
        assert found.gates[name].thresholds == {2: 1, 3: 3, 4: "all"}


def test_a_copy_of_ones_own_is_used(tmp_path):
    own = tmp_path / "lab.toml"
    own.write_text(TEXT.replace('name = "robotics"', 'name = "lab"').replace("1 = 0.50", "1 = 0.6"))
    found = load_profile(own)
    assert (found.name, found.gates["autonomy"].thresholds) == ("lab", {1: 0.6})
    assert found.digest != load_profile("robotics").digest
    assert load_profile(str(own)) == found
    said = assess(Readings(policy="arm", side="sim", values={}), own)
    assert (said.profile, said.profile_digest) == ("lab", found.digest)


def test_the_digest_is_of_the_numbers_and_not_of_the_spelling(tmp_path):
    own = tmp_path / "lab.toml"
    own.write_text("# a comment\n" + TEXT.replace("1 = 0.50", "1 = 0.500"))
    assert load_profile(own).digest == load_profile("robotics").digest


@pytest.mark.parametrize("name", ["lab.toml", "LAB.TOML"])
def test_a_byte_order_mark_and_capitals_do_no_harm(tmp_path, name):
    (tmp_path / name).write_text("\ufeff" + TEXT, encoding="utf-8")
    assert load_profile(tmp_path / name) == load_profile("robotics")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('reads = "RA"', 'reads = "RAA"', "gates.ra.reads: unknown quantity 'RAA'; did you mean"),
        ("version = 1", "version = 1\nversoin = 1", "unknown key 'versoin'; did you mean"),
        ('reads = "RA"', 'reads = "RA"\nthreshold = 1', "gates.ra.threshold: unknown key"),
        ("least = 0.005", "leest = 0.005", "kappa.leest: unknown key 'leest'; did you"),
        ("2 = 0.60, 3 = 0.75", "2 = 0.8, 3 = 0.75", "level 3 asks for less (0.75) than level 2"),
        ("2 = 1.0, 3 = 0.5", "2 = 1.0, 3 = 1.5", "gates.minor.thresholds: level 3 asks for less"),
        (FAMILIES, '2 = "all", 3 = 3', "gates.ar_families.thresholds: level 3 asks for less (3.0)"),
        (FAMILIES, '2 = "half", 3 = 9', "level 3 asks for less (9.0) than level 2 (half)"),
        (FAMILIES, '2 = "all", 3 = "half"', "level 3 asks for less (half) than level 2 (all)"),
        (FAMILIES, '2 = 1, 3 = "third"', "thresholds.3: must be a number, or for families 'half'"),
        (FAMILIES, "2 = 1.5", "thresholds.2: must be a whole number of families from 1 on"),
        (FAMILIES, "2 = 0", "thresholds.2: must be a whole number of families from 1 on"),
        (FAMILIES, "1 = 1", "gates.ar_families.of: gate 'ar' has no threshold for level 1"),
        (FAMILIES, "", "gates.ar_families.thresholds: is empty"),
        ("2 = 0.60", '2 = "all"', "gates.qc.thresholds.2: must be a number; words are for famil"),
        ("2 = 0.60", '2 = "0.60"', "gates.qc.thresholds.2: must be a number"),
        ("2 = 0.60", "2 = true", "gates.qc.thresholds.2: must be a number"),
        ("2 = 0.60", "2 = nan", "gates.qc.thresholds.2: must be a number"),
        ("2 = 0.60", f"2 = 1{'0' * 400}", "gates.qc.thresholds.2: must be a number"),
        ("2 = 0.60", "2 = -inf", "gates.qc.thresholds.2: must be a number"),
        ("2 = 0.60", "2 = [0.6]", "gates.qc.thresholds.2: must be a number"),
        ("2 = 0.60", "6 = 0.60", "must be a level, from 1 to 5, given '6'"),
        ("2 = 0.60", "two = 0.60", "must be a level, from 1 to 5, given 'two'"),
        ("2 = 0.80, 3 = 0.90, 4 = 0.97", "2 = 80, 3 = 90, 4 = 97", "must be from 0 to 1"),
        (MAJOR, 'test = "zero"\nthresholds = { 2 = 3 }', "gates.major.thresholds.2: must be 0"),
        (f'"major_incidents"\n{MAJOR}', f'"SS"\n{MAJOR}', "gates.major.thresholds.2: goes with"),
        ("{ 3 = 1, 4 = 1 }", "{ 3 = 0 }", "gates.expansion.thresholds.3: must be above 0"),
        ('test = "at_least"', 'test = "atleast"', "gates.autonomy.test: unknown test 'atleast'"),
        ('of = "ar"', 'of = "er"', "gates.ar_families.of: unknown gate 'er'; did you mean"),
        ('of = "ar"', 'of = "s2r_families"', "has no threshold that a family could reach"),
        ('of = "ar"', 'of = "major"', "has no threshold that a family could reach"),
        ('of = "ar"', 'of = "s2r"', "gate 's2r' reads 'S2R_new_task' and this one 'AR'"),
        ('of = "ar"', 'of = "ar_families"', "only of kappa is there one result a day"),
        ('of = "ar"\n', "", "gates.ar_families.of: a gate of families needs either `of` or `each`"),
        ('of = "ar"\n', 'of = "ar"\neach = { 2 = 0.5 }\n', "needs either `of` or `each`"),
        ('of = "ar"\n', "each = { 2 = 0.5 }\n", "gates.ar_families.each: must be given"),
        ('reads = "RA"', 'reads = "RA"\neach = { 2 = 0.5 }', "gates.ra.each: goes with test"),
        ('reads = "RA"', 'reads = "RA"\ngroup = "general"\nwhen = "now"', "gates.ra.when: unknown"),
        ('reads = "RA"', 'reads = "RA"\ngroup = "others"', "ra.group: unknown group 'others'"),
        ("ask = []", 'ask = ["others"]', "ask.0: "),
        ("log = 1 ", "log = 2 ", "audits.log: must be 1; without it nothing can be shown"),
        ("log = 1 ", "# ", "audits.log: must be 1; without it nothing can be shown"),
        ("evidence = 1 ", "# ", "audits.evidence: must be 1; without it nothing can be shown"),
        ("episodes = 30 ", "episodes = 0 ", "battery.episodes: must be greater than or equal to 1"),
        ("grace_days = 1", "grace_days = -1", "window.grace_days: must be greater than or equal"),
        ("horizon = 50 ", "horizon = 0 ", "axes.horizon: must be greater than 0"),
        ("horizon = 50 ", "horizn = 50 ", "axes.horizn: unknown key 'horizn'; did you mean"),
        ('weights = "robotics"', 'weights = "robots"', "index.weights: unknown weights 'robots'"),
        ('weights = "robotics"', "weights = { Q = 1 }", "index.weights: unknown axis 'Q'"),
        ('weights = "robotics"', "weights = { A = 0 }", "index.weights: are all 0"),
        ('weights = "robotics"', "weights = { A = -1 }", "weights: the weight of A must be"),
        ('weights = "robotics"', "weights = { A = nan }", "weights: the weight of A must be"),
        ('weights = "robotics"', "weights = { A = 1e308 }", "weights: the weight of A must be a"),
        ('weights = "robotics"', "weights = 3", "index.weights: must name weights, or be a table"),
        ("gamma = 0.5", "gamma = 1e308", "index.gamma: must be less than or equal to"),
        ("[index]", '[axes.anchors."$"]\nbaseline = 3\nexpert = 3\n[index]',
         "equals the baseline, 3; two different anchors are needed"),
        ("[index]", '[axes.anchors."$"]\nexpert = 3\nscale = "log"\n[index]', "anchors above 0"),
        ("[index]", "[axes.anchors.Q]\nexpert = 3\n[index]", "anchors: unknown axis 'Q'"),
        ('reads = "RA"', 'reads = "RA"\nof = "ar"', "gates.ra.of: goes with test = 'families'"),
        ('reads = "RA"', 'reads = "RA"\ndays = { 2 = 3 }', "gates.ra.days: goes with families"),
        (DAYS, "days = { 2 = 9, 3 = 7, 4 = 30 }", "gates.kappa.days: level 3 asks for less (7)"),
        (DAYS, "days = { 2 = 0, 3 = 7, 4 = 30 }", "gates.kappa.days.2: must be greater than or"),
        (DAYS, "days = { 2 = 7.5, 3 = 7, 4 = 30 }", "gates.kappa.days.2: must be a whole number"),
        (DAYS, "days = { 2 = 7 }", "gates.kappa.days: must be given for the levels of threshold"),
        ("no_help = 2", "nohelp = 2", "audits: unknown audit 'nohelp'; did you mean 'no_help'"),
        ("no_help = 2", "no_help = 0", "audits.no_help: must be greater than or equal to 1"),
        ("no_help = 2", 'no_help = "2"', "audits.no_help: must be a whole number, given '2'"),
        ("version = 1", 'version = "1"', "version: must be a whole number"),
        ("version = 1", "version = true", "version: must be a whole number"),
        ('title = "A, autonomy"', 'title = " "', "gates.autonomy.title: must not be empty"),
        ("least = 0.005", "least = 0", "kappa.least: must be greater than 0"),
        ("least = 0.005", 'least = "0.005"', "kappa.least: must be a number"),
        ("window_days = 7", "window_days = inf", "kappa.window_days: must be a finite number"),
        ("resamples = 2000", "resamples = 2000000000", "index.resamples: must be less than"),
        ("share = 0.95", "share = 1.5", "maintenance.share: must be less than or equal to 1"),
        ('["payload",', '["",', "maintenance.drifts.0: must not be empty"),
        ('["payload", "friction", "lighting", "firmware"]', "[]", "maintenance.drifts: must name"),
        ('["payload", "friction", "lighting", "firmware"]', '"payload"', "drifts: must be a list"),
        ("highest_without_robot = 1", "highest_without_robot = 5", "robot: must be 0 or 1, bec"),
        ("highest_without_robot = 1", "highest_without_robot = 6", "robot: must be less"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_with_file_and_field(tmp_path, old, new, said):
    assert old in TEXT
    assert said in refused(tmp_path / "lab.toml", TEXT.replace(old, new, 1))


def test_a_metric_called_as_what_gates_read_is_named(tmp_path, monkeypatch):
    names()
    monkeypatch.setattr(registry, "_METRICS", dict(registry._METRICS))
    registry.metric("autonomy", group="Ours", unit="ratio")(lambda body: ())
    said = refused(tmp_path / "lab.toml", TEXT)
    assert "gates.autonomy.reads: 'autonomy' is one of the quantities of gates" in said
    assert "metric 'autonomy' of" in said
    assert "rename the metric" in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT + "\n[gates", "is not TOML: Expected ']'"),
        (TEXT + "\n[audits]\n", "is not TOML: Cannot declare"),
        ("a = " + "[" * 100_000, "is not TOML"),
        ("version = " + "1" * 5000, "is not TOML"),
        (TEXT.encode() + b"# \xff", ": is not UTF-8 text: byte 0xff; save it as UTF-8"),
        (TEXT.encode("utf-16")[:-1], "is cut short or no UTF-16; save it as UTF-8"),
        ("", "name: is missing"),
        ("gates = 3", "is missing"),
        (
            TEXT[: TEXT.index("[gates.autonomy]")] + "[gates]\n[audits]\n",
            "gates: must name at least one",
        ),
    ],
    ids=["broken", "twice", "deep", "huge", "latin", "utf16", "empty", "no-table", "no-gates"],
)
def test_what_is_no_profile_is_refused_in_one_line(tmp_path, text, said):
    assert said in refused(tmp_path / "lab.toml", text)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.toml: no such profile file"):
        load_profile(tmp_path / "nowhere.toml")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(InputError, match=r"folder\.toml: cannot be read: is a folder, not a file"):
        load_profile(tmp_path / "folder.toml")


@pytest.mark.parametrize("name", ["robotcs", "", "../robotics", "lab"])
def test_an_unknown_name_lists_those_there_are(name):
    with pytest.raises(
        InputError, match="valid: general, robotics; a profile of your own is named by its"
    ):
        load_profile(name)


def test_a_level_that_a_profile_asks_nothing_of_is_not_issued(tmp_path):
    """Else a profile that ends at level 2 would hand out level 4 with it."""
    head = TEXT[: TEXT.index("[gates.autonomy]")]
    gate = '[gates.hours]\ntitle = "hours"\nreads = "exposure_hours"\ntest = "at_least"\n'
    own = tmp_path / "lab.toml"
    own.write_text(
        f"{head}{gate}thresholds = {{ 1 = 1, 2 = 10 }}\n[audits]\nlog = 1\nevidence = 1\n"
    )
    hours = Estimate(value=50.0, low=50.0, high=50.0, n=1, method="counted", unit="h")
    audits = tuple(Audit(id=one, title=one, status="pass", reason="") for one in AUDITS)
    values = {"exposure_hours": hours}
    found = assess(Readings(policy="arm", side="real", values=values, audits=audits), own)
    assert (found.level_conservative, found.level, found.next_level) == (2, 2, 3)
    assert [one.text for one in found.lacking] == [
        "gates: the profile asks nothing of level 3, so nothing can show it"
    ]


def one_gate(path: Path, gate: str) -> Path:
    """A profile with this gate alone."""
    head = TEXT[: TEXT.index("[gates.autonomy]")]
    title = '[gates.hours]\ntitle = "hours"\nreads = "autonomy"\ntest = "at_least"\n'
    path.write_text(f"{head}{title}{gate}\n[audits]\nlog = 1\nevidence = 1\n")
    return path


def passing(side: str = "real") -> Readings:
    audits = tuple(Audit(id=one, title=one, status="pass", reason="") for one in AUDITS)
    sure = Estimate(value=1.0, low=1.0, high=1.0, n=9, method="counted", unit="ratio")
    return Readings(policy="arm", side=side, values={"autonomy": sure}, audits=audits)


def test_a_profile_of_which_no_gate_decides_is_refused(tmp_path):
    own = one_gate(tmp_path / "lab.toml", 'group = "general"\nthresholds = { 1 = 0.5 }')
    with pytest.raises(InputError, match="gates: none of them decides; name their group in `ask`"):
        load_profile(own)


def test_gates_that_do_not_apply_to_a_policy_give_it_no_level(tmp_path):
    """Else all of none would pass."""
    asked = 'when = "no_body"\nthresholds = { 1 = 0.5, 2 = 0.5, 3 = 0.5, 4 = 0.5 }'
    own = one_gate(tmp_path / "lab.toml", asked)
    found = assess(passing(), own)
    assert (found.level_conservative, found.gates, found.steps) == (0, (), ())
    assert assess(passing("sim"), own).would_be == 4


def test_the_fifth_level_comes_after_the_fourth_only(tmp_path):
    own = one_gate(tmp_path / "lab.toml", "thresholds = { 1 = 0.5, 5 = 0.5 }")
    found = assess(passing(), own)
    assert (found.level_conservative, found.steps[0].below) == (1, "missing")
    whole = one_gate(tmp_path / "all.toml", "thresholds = { 4 = 0.5, 5 = 0.5 }")
    assert assess(passing(), whole).level_conservative == 5
