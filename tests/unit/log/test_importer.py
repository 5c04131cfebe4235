"""Another lab's table becomes a trial, or is refused with file, line and column."""

import hashlib

import pytest

from robo_eval.core.errors import InputError, RoboEvalError, TrialDirectoryError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.importer import import_csv
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial

TABLE = """run,model,outcome,minutes,when,energy,stars
a1,pi0,yes,0.5,2026-03-01T10:30,1.5,5
a2,pi0,no,1,2026-03-01T11:31:00+01:00,,2
a3,act,yes,0.25,,2,4

a4,act,crashed,0.1,2026-03-01T10:40,NA,
"""
MAP = """
columns:
  episode_id: run
  policy: model
  end_reason: {column: outcome, values: {yes: success, no: failure, crashed: fault}}
  duration_s: {column: minutes, unit: min}
  start_ns: {column: when, unit: iso8601}
  costs.energy_j: {column: energy, unit: kJ}
constants: {task: push, side: real, robot: arm_1, level: 2, difficulty: hard}
missing: [NA]
"""


@pytest.fixture
def lab(tmp_path):
    """Import a table by a map."""

    def run(table: str | bytes = TABLE, columns: str | bytes = MAP, out: str = "out"):
        for name, content in (("lab.csv", table), ("map.yaml", columns)):
            raw = content.encode() if isinstance(content, str) else content
            (tmp_path / name).write_bytes(raw)
        return import_csv(tmp_path / "lab.csv", tmp_path / "map.yaml", tmp_path / out)

    return run


def rows(trial: TrialDirectory):
    with EpisodeStore(trial.path, durable=False) as store:
        return list(store.episodes())


def test_a_table_becomes_a_trial(lab, tmp_path):
    trial = lab()
    one, two, three, four = rows(trial)
    assert [e.episode_id for e in (one, two, three, four)] == ["a1", "a2", "a3", "a4"]
    assert (one.side, one.task, one.robot, one.level) == (Side.REAL, "push", "arm_1", 2)
    assert (one.duration_s, two.duration_s, three.duration_s) == (30.0, 60.0, 15.0)
    assert one.start_ns == 1_772_361_000_000_000_000
    assert two.start_ns == one.start_ns + 60_000_000_000
    assert three.start_ns == 0
    assert (one.costs, two.costs, four.costs) == ({"energy_j": 1500.0}, {}, {})
    assert (one.success, one.quality, two.success, two.quality) == (True, 1.0, False, 0.0)
    assert (four.end_reason, four.success, four.quality) == (EndReason.FAULT, None, None)
    assert one.policy_digest == two.policy_digest != three.policy_digest
    assert one.software.startswith("imported by robo-eval")
    assert trial.status() == "complete"
    report = verify_trial(trial.path)
    assert report.ok, report.problems
    assert report.notes == ()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.csv", "map.yaml", "out"]


def test_the_plan_says_that_it_was_imported(lab):
    trial = lab()
    imported = trial.plan.imported
    assert imported.file == "lab.csv"
    assert imported.sha256 == hashlib.sha256(TABLE.encode()).hexdigest()
    assert imported.rows == 4
    assert imported.column_map["columns"]["policy"] == "model"
    assert [policy.name for policy in trial.plan.policies] == ["pi0", "act"]
    assert [(task.env, task.levels) for task in trial.plan.tasks] == [("push", (2,))]
    assert trial.plan.episodes == 2
    assert {row.plan_digest for row in rows(trial)} == {trial.plan_digest}


def test_metrics_take_imported_episodes(lab):
    from robo_eval.metrics.frame import episodes_frame

    assert len(episodes_frame(lab().frame())) == 4


def test_conditions_that_a_plan_would_not_tell_apart_are_one(lab):
    columns = SIMPLE.replace("s}", "s, difficulty: d, level: l}")
    trial = lab("p,s,d,l\na,1,easy,2\na,1,,2\nb,0,hard,2\na,1,easy,\n", columns)
    found = [(task.levels, task.difficulties[0].value) for task in trial.plan.tasks]
    assert found == [((2,), "easy"), ((2,), "hard"), (None, "easy")]
    assert trial.plan.episodes == 2
    assert [row.difficulty for row in rows(trial)] == ["easy", None, "hard", "easy"]


SIMPLE = "columns: {policy: p, success: s}\nconstants: {task: t, side: sim}\n"


BY_QUALITY = """
columns: {policy: p, quality: {column: s, %s}}
success_quality: 0.8
constants: {task: t, side: sim}
"""


@pytest.mark.parametrize(
    ("table", "columns", "expected"),
    [
        pytest.param(
            "p;s;q\na;1;0,5\n",
            SIMPLE.replace("s}", "s, quality: q}") + "delimiter: ';'\ndecimal: ','\n",
            (True, 0.5),
            id="semicolons",
        ),
        pytest.param("\ufeffp,s\na,TRUE\n", SIMPLE, (True, 1.0), id="byte order mark"),
        pytest.param("p\ts\r\na\tno\r\n", SIMPLE + "delimiter: tab\n", (False, 0.0), id="tabs"),
        pytest.param("p,s\na,85\n", BY_QUALITY % "unit: '%'", (True, 0.85), id="percent"),
        pytest.param("p,s\na,3\n", BY_QUALITY % "scale: 0.25", (False, 0.75), id="scale"),
        pytest.param(
            'p,s\n"a\nb",1\n',
            SIMPLE.replace("policy: p", 'policy: {column: p, values: {"a\\nb": x}}'),
            (True, 1.0),
            id="line break in a cell",
        ),
    ],
)
def test_dialects_and_units(lab, table, columns, expected):
    (row,) = rows(lab(table, columns))
    assert (row.success, row.quality) == expected


BAD_TABLES = {
    "missing column": ("p,q\na,1\n", SIMPLE, "line 1: unknown column 's'.*mapped to 'success'"),
    "misspelt column": (
        "policy,sucess\na,1\n",
        "columns: {policy: policy, success: success}\nconstants: {task: t, side: sim}\n",
        "did you mean 'sucess'",
    ),
    "column twice": ("p,s,p\na,1,b\n", SIMPLE, "column 'p' appears twice"),
    "empty file": ("", SIMPLE, "is empty; it needs a header"),
    "header only": ("p,s\n", SIMPLE, "holds no episodes"),
    "not text": (b"p,s\n\xff\xfe,1\n", SIMPLE, "is no CSV in UTF-8"),
    "zero byte": (b"p,s\na\x00,1\n", SIMPLE, ""),
    "open quote": ('p,s\n"a,1\n', SIMPLE, "is no CSV"),
    "short line": ("p,s\na,1\nb\n", SIMPLE, "line 3: has 1 cells, the header has 2"),
    "long line": ("p,s\na,1,2\n", SIMPLE, "line 2: has 3 cells"),
    "NaN": (
        "p,s,d\na,1,1\nb,0,nan\n",
        SIMPLE.replace("s}", "s, duration_s: d}"),
        "line 3, column 'd': 'nan' is not a finite number",
    ),
    "infinity": (
        "p,s,d\na,1,1e999\n",
        SIMPLE.replace("s}", "s, duration_s: d}"),
        "line 2, column 'd': '1e999' is not a finite number",
    ),
    "negative duration": (
        "p,s,d\na,1,-3\n",
        SIMPLE.replace("s}", "s, duration_s: d}"),
        "line 2, column 'd': '-3' is negative",
    ),
    "no number": (
        "p,s,d\na,1,fast\n",
        SIMPLE.replace("s}", "s, duration_s: d}"),
        "line 2, column 'd': 'fast' is not a number",
    ),
    "half a tick": (
        "p,s,n\na,1,3.5\n",
        SIMPLE.replace("s}", "s, ticks: n}"),
        "line 2, column 'n': '3.5' is not a whole number",
    ),
    "quality over one": (
        "p,s,q\na,1,7\n",
        SIMPLE.replace("s}", "s, quality: q}"),
        r"column 'q': '7' gives 7, which is outside \[0, 1\]",
    ),
    "success without quality": (
        "p,s,q\na,1,0\n",
        SIMPLE.replace("s}", "s, quality: q}"),
        "line 2, column 'q': quality 0 contradicts success True",
    ),
    "failure with full quality": (
        "p,s,q\na,no,1.0\n",
        SIMPLE.replace("s}", "s, quality: q}"),
        "column 'q': quality 1 contradicts success False",
    ),
    "below its own threshold": (
        "p,s,q\na,yes,0.7\n",
        SIMPLE.replace("s}", "s, quality: q}") + "success_quality: 0.8\n",
        "quality 0.7 contradicts success True",
    ),
    "success against end reason": (
        "p,s,e\na,yes,timeout\n",
        SIMPLE.replace("s}", "s, end_reason: e}"),
        "line 2, column 's': success True contradicts end_reason 'timeout'",
    ),
    "unknown end reason": (
        "p,s,e\na,no,timout\n",
        SIMPLE.replace("s}", "s, end_reason: e}"),
        "line 2, column 'e': unknown end_reason 'timout'; did you mean 'timeout'",
    ),
    "unclear success": ("p,s\na,maybe\n", SIMPLE, "line 2, column 's': 'maybe' is neither"),
    "no success": ("p,s\na,\n", SIMPLE, "line 2, column 's': whether it succeeded"),
    "word without value": (
        "p,s\na,perhaps\n",
        SIMPLE.replace("success: s", "success: {column: s, values: {yes: true}}"),
        "line 2, column 's': unknown value 'perhaps'",
    ),
    "empty policy": ("p,s\n,1\n", SIMPLE, "line 2, column 'p': is empty; policy is needed"),
    "policy no plan can name": ("p,s\na b,1\n", SIMPLE, "policies.*rename it with `values`"),
    "double id": (
        "i,p,s\nx,a,1\ny,a,1\nx,a,0\n",
        SIMPLE.replace("{policy", "{episode_id: i, policy"),
        "line 4, column 'i': 'x' is in line 2 already",
    ),
    "no date": (
        "p,s,w\na,1,yesterday\n",
        SIMPLE.replace("s}", "s, start_ns: {column: w, unit: iso8601}}"),
        "line 2, column 'w': 'yesterday' is not a date",
    ),
    "unknown difficulty": (
        "p,s,d\na,1,hrad\n",
        SIMPLE.replace("s}", "s, difficulty: d}"),
        "did you mean 'hard'",
    ),
    "wrong constant": ("p,s\na,1\n", SIMPLE.replace("side: sim", "side: sm"), "mean 'sim'"),
}


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_refused_and_leaves_nothing(lab, tmp_path, name):
    table, columns, reason = BAD_TABLES[name]
    with pytest.raises(InputError, match=rf"lab\.csv: (?s:.*){reason}") as caught:
        lab(table, columns)
    assert len(str(caught.value).splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.csv", "map.yaml"]


BAD_MAPS = {
    "not yaml": ("columns: [", "not valid YAML"),
    "not text": (b"\xff\x00", "not valid YAML"),
    "no mapping": ("- a\n", "column map: must be a mapping"),
    "empty": ("", "must be a mapping"),
    "no columns": ("constants: {task: t}\n", "columns: must be a mapping"),
    "unknown key": ("colums: {policy: p}\n", "unknown key 'colums'; did you mean 'columns'"),
    "unknown column of ours": ("columns: {sucess: s}\n", "did you mean 'success'"),
    "column of ours that cannot be given": ("columns: {plan_digest: s}\n", "plan_digest"),
    "unknown source key": ("columns: {success: {colum: s}}\n", "did you mean 'column'"),
    "no source": ("columns: {success: {values: {a: b}}}\n", "name the column of the other lab"),
    "unknown unit": ("columns: {duration_s: {column: s, unit: mins}}\n", "did you mean 'min'"),
    "date that is none": ("columns: {ticks: {column: s, unit: iso8601}}\n", "only start_ns"),
    "bad scale": ("columns: {ticks: {column: s, scale: many}}\n", "not a finite number"),
    "mapping column as a whole": ("columns: {costs: s}\n", "must be written as 'costs.<name>'"),
    "plain column with a dot": ("columns: {policy.x: s}\n", "must be written as 'policy'"),
    "given twice": ("columns: {policy: p}\nconstants: {policy: x}\n", "both a column and"),
    "bad delimiter": ("columns: {policy: p}\ndelimiter: ab\n", "delimiter: must be one character"),
    "bad missing": ("columns: {policy: p}\nmissing: NA\n", "missing: must be a list"),
    "bad threshold": ("columns: {policy: p}\nsuccess_quality: 2\n", "success_quality"),
    "constant that is a list": ("columns: {policy: p}\nconstants: {task: [a]}\n", "one value"),
}


@pytest.mark.parametrize("name", BAD_MAPS)
def test_a_bad_map_is_refused_and_leaves_nothing(lab, tmp_path, name):
    content, reason = BAD_MAPS[name]
    with pytest.raises(InputError, match=rf"map\.yaml: .*{reason}") as caught:
        lab("p,s\na,1\n", content)
    assert len(str(caught.value).splitlines()) == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.csv", "map.yaml"]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("columns: {success: s}\nconstants: {task: t, side: sim}\n", "nothing about 'policy'"),
        ("columns: {policy: p}\nconstants: {task: t, side: sim}\n", "where success, end_reason or"),
    ],
)
def test_a_map_must_say_what_every_episode_needs(lab, columns, reason):
    with pytest.raises(InputError, match=reason):
        lab("p,s\na,1\n", columns)


def test_an_existing_directory_is_refused(lab, tmp_path):
    lab()
    with pytest.raises(TrialDirectoryError, match="holds a trial already"):
        lab()
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").write_text("precious")
    with pytest.raises(TrialDirectoryError, match="holds something else"):
        lab(out="thesis")


def test_missing_files_are_named(tmp_path, lab):
    with pytest.raises(RoboEvalError, match=r"no\.yaml: the column map cannot be read"):
        import_csv(tmp_path / "no.csv", tmp_path / "no.yaml", tmp_path / "out")
    (tmp_path / "map.yaml").write_text(MAP)
    with pytest.raises(RoboEvalError, match=r"no\.csv: cannot be read"):
        import_csv(tmp_path / "no.csv", tmp_path / "map.yaml", tmp_path / "out")


def test_a_failing_disk_leaves_nothing(lab, tmp_path, monkeypatch):
    def full(*_args):
        raise TrialDirectoryError("episodes.db: the disk is full")

    monkeypatch.setattr(EpisodeStore, "append", full)
    with pytest.raises(TrialDirectoryError, match="full"):
        lab()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.csv", "map.yaml"]
