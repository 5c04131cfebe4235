"""A map is suggested: a plain table imports by it as it is, and what is unsure is asked."""

import csv
import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import Side
from robo_eval.log.column_map import ColumnMap
from robo_eval.log.import_suggest import _NAMES, suggest_map
from robo_eval.log.importer import import_csv, read_rows
from robo_eval.log.store import EpisodeStore

PLAIN = """Episode,Model,Task,Side,Seed,Success,Score,Duration (s),Date,Note
1,pi0,cup,Real,3,TRUE,1.0,12.5,2026-03-01 10:30,fine
2,act,cup,Real,3,FALSE,0.5,NA,2026-03-01 10:31,"fell, twice"
"""
GERMAN = """Lauf;id;Aufgabe;status;outcome;dauer_s;start
;e1;x;y;ja;1,5;05.03.2026
;e2;x;y;nein;2,5;31.03.2026
"""


@pytest.fixture
def suggested(tmp_path):
    """The map of a table, and why it does not import yet."""

    def make(text: str) -> tuple[str, str | None]:
        (tmp_path / "lab.csv").write_text(text)
        problem = suggest_map(tmp_path / "lab.csv", tmp_path / "map.yaml")
        return (tmp_path / "map.yaml").read_text(), problem

    return make


def test_a_plain_table_imports_by_the_map_as_it_is(suggested, tmp_path):
    _, problem = suggested(PLAIN)
    assert problem is None
    trial = import_csv(tmp_path / "lab.csv", tmp_path / "map.yaml", tmp_path / "out")
    with EpisodeStore(trial.path, durable=False) as store:
        one, two = store.episodes()
    assert one.side == "real"
    assert (one.policy, one.task, one.seed, one.success, one.quality) == ("pi0", "cup", 3, True, 1)
    assert (one.duration_s, two.duration_s, two.success) == (12.5, None, False)
    assert two.start_ns - one.start_ns == 60 * 10**9


def test_what_the_table_does_not_say_is_asked(suggested):
    text, problem = suggested("id,s,minutes\na,1,2\nb,0,3\n")
    assert problem is not None
    assert "  # policy: lab  # whose episodes are they?" in text
    assert "  # task: lab  # what was to be done?" in text
    assert "  # side: sim  # or twin, or real: where was it played?" in text
    assert "duration_s: {column: minutes, unit: min}" in text


def test_a_table_of_a_german_spreadsheet(suggested, tmp_path):
    text, problem = suggested(GERMAN)
    assert problem is not None
    (tmp_path / "map.yaml").write_text(re.sub("# (policy|side):", r"\1:", text))
    found = ColumnMap.read(tmp_path / "map.yaml")
    assert (found.delimiter, found.decimal) == (";", ",")
    assert found.columns["success"].values == {"ja": "true", "nein": "false"}
    assert found.columns["start_ns"].formats == ("%d.%m.%Y",)
    assert "# not used: Lauf, status" in text


@pytest.mark.parametrize(
    ("table", "line"),
    [
        (
            "id,success,date\na,1,03/05/2026\nb,1,04/06/2026\n",
            '  # start_ns: {column: date, formats: ["%m/%d/%Y"]}  # how',
        ),
        (
            "id,success,time\na,1,3\nb,0,4\n",
            "  # duration_s: {column: time, unit: s}  # in which unit?",
        ),
        (
            "id,outcome\na,great\nb,poor\n",
            '  # success: {column: outcome, values: {great: "true or false?"',
        ),
        ("id,score\na,7\nb,9\n", "  # quality: {column: score, scale: 0.1}  # is it a share"),
        ("id,grasped\na,1\nb,0\n", "  # success: grasped  # does it say so?"),
        ("id,success\na,1\na,0\n", "  # episode_id? id: it is not another one in every line"),
        ("policy,success\na,1\n,0\n", "  # policy? policy: it is empty in some lines"),
        ("model,checkpoint,success\na,1k,1\na,2k,0\n", "  # policy: checkpoint  # which of these"),
        ("side,success\nlab,1\n", '  # side: {column: side, values: {lab: "sim, twin or real?"}}'),
        ("policy,object,pose,success\na,x,l,1\na,x,l,1\n", "  # seed: {column: pose, unit: name}"),
        ("policy,success,n\na,1,10\n", "  # successes: success  # a number"),
        ("success\n1\n-\n", "  # success: success  # is `-` no score"),
        ("policy,success,n\na,1,10\n", "  # trials: n  # beside"),
        ("policy,success,n\na,yes,10\n", "  # not used: n"),
        ("id,success,time\na,1,75\nb,0,90\n", "  # duration_s: {column: time, unit: s}  # in"),
    ],
)
def test_what_is_unsure_is_a_comment_with_a_question(suggested, table, line):
    text, _ = suggested(table)
    assert [found for found in text.splitlines() if found.startswith(line)]


def test_sums_and_named_starts_are_found(suggested):
    text, _ = suggested("model,task,success_rate,n_trials\npi0,cup,90%,10\nact,cup,20%,10\n")
    assert "rate: {column: success_rate, unit: '%'}" in text
    assert "trials: n_trials" in text


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("policy,side\nA,Real\nB,Sim\n", "  side: {column: side, values: {Real: real, Sim: sim}}"),
        (
            "policy\nACT v2\nACT_v2\n",
            "  policy: {column: policy, values: {ACT v2: ACT_v2-2, ACT_v2: ",
        ),
        ("date,time\n09.02.2026,09:05\n", "  start_ns: {columns: [date, time], formats:"),
        ("date,time\n2026-02-09,09:05:00\n", "  start_ns: {columns: [date, time], unit: iso8601}"),
        ("policy,object,pose\na,x,l\na,y,l\n", "  seed: {columns: [object, pose], unit: name}"),
        ("policy,object,seed\na,x,1\na,y,1\n", "  seed: {columns: [object, seed], unit: name}"),
        ("policy,successes,trials\na,5/5,5\n", "  successes: successes"),
        ("policy,solved it,day\na,18/20,3/7/2026\nb,-,3/8/2026\n", "  successes: solved it"),
        ("policy,succ,n\na,18/20,20\nb,9/20,20\n", "  trials: n"),
        ("success,success_rate\n1,0.5\n", "  success: success"),
        ("energy [Wh]\n0.5\n", '  costs.energy_j: {column: "energy [Wh]", unit: Wh}'),
        ('"duration (s)"\n"1,234.5"\n0.5\n', '  duration_s: {column: "duration (s)", unit: s}'),
    ],
)
def test_what_the_table_says_is_in_the_map(suggested, table, line):
    text, _ = suggested(table)
    assert [found for found in text.splitlines() if found.startswith(line)], text


OFFERS = [
    "Run;Modell;Erfolg\n1;pi0;WAHR\n2;act;FALSCH\n",
    "id,policy,grasped\n1,a,ja\n2,a,nein\n",
    "pose,pi0,act\nl,y,n\nl,n,y\n",
]


@pytest.mark.parametrize("table", OFFERS)
def test_what_is_offered_works_without_its_sign(suggested, table, tmp_path):
    text, problem = suggested(table)
    assert problem is not None
    wide = "# policies: " in text
    said = [
        line.replace("# ", "", 1)
        if re.match(r" *# [a-z_]+: ", line)
        and not (wide and re.match(r" *# (success|policy): ", line))
        and "not used" not in line
        else line
        for line in text.splitlines()
    ]
    (tmp_path / "map.yaml").write_text("\n".join(said))
    trial = import_csv(tmp_path / "lab.csv", tmp_path / "map.yaml", tmp_path / "out")
    with EpisodeStore(trial.path, durable=False) as store:
        found = sorted((row.policy, row.success) for row in store.episodes())
    assert [success for _, success in found].count(True) == len(found) / 2


truths = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(["pi0", "ACT v2", "ACT_v2", "Übung", "π0 (ours)"]),
        "side": st.sampled_from(list(Side)),
        "task": st.sampled_from(["cup", "Schublade öffnen"]),
        "success": st.booleans(),
        "seed": st.integers(0, 3),
    }
)


@given(st.lists(truths, min_size=1, max_size=6), st.sampled_from(["ja nein", "y n", "ok failed"]))
def test_a_suggested_map_that_imports_gives_the_true_rows(rows, words):
    said = dict(zip([True, False], words.split(), strict=True))
    with TemporaryDirectory() as folder:
        table, out = Path(folder, "t.csv"), Path(folder, "m.yaml")
        with table.open("w", newline="") as file:
            told = [
                [row["policy"], row["side"].title(), row["task"], said[row["success"]], row["seed"]]
                for row in rows
            ]
            csv.writer(file).writerows([["Model", "Side", "Task", "Erfolg", "Seed"], *told])
        assert suggest_map(table, out) is None
        found = [row.values for row in read_rows(table, out)[0]]
    for name in ("side", "task", "success", "seed"):
        assert [row[name] for row in found] == [row[name] for row in rows]
    pairs = {(row["policy"], own["policy"]) for row, own in zip(rows, found, strict=True)}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


names = st.sampled_from(
    [*(name for words in _NAMES.items() for name in " ".join(words).split()), "x [s]", 'a"b: #']
)
cells = st.sampled_from(
    ["", "1", "0.5", "85%", "yes", "2026-03-01", "5.3.2026", "NA", "1,5", "a b"]
)


@given(st.lists(names, min_size=1, max_size=6), st.data())
def test_whatever_a_table_holds_its_map_is_one_or_says_what_is_missing(header, data):
    rows = data.draw(st.lists(st.lists(cells, min_size=len(header), max_size=len(header))))
    with TemporaryDirectory() as folder:
        table, out = Path(folder, "t.csv"), Path(folder, "m.yaml")
        with table.open("w", newline="") as file:
            csv.writer(file).writerows([header, *rows])
        problem = suggest_map(table, out)
        is_open = problem is not None and re.search("must say where|says nothing about", problem)
        assert is_open or ColumnMap.read(out).columns


def test_a_map_that_is_there_stays(suggested, tmp_path):
    (tmp_path / "map.yaml").write_text("mine")
    with pytest.raises(InputError, match=r"map\.yaml: is there already"):
        suggested(PLAIN)
    assert (tmp_path / "map.yaml").read_text() == "mine"


def test_the_verb_writes_a_map_and_imports_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lab.csv").write_text("id,notes\na,x\n")
    done = CliRunner().invoke(app, ["import", "csv", "lab.csv", "--suggest", "map.yaml"])
    assert done.exit_code == 0
    assert "It cannot import the table yet: map.yaml: " in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lab.csv", "map.yaml"]
    both = CliRunner().invoke(
        app, ["import", "csv", "lab.csv", "--suggest", "m.yaml", "--out", "out"]
    )
    assert "leave --map and --out out" in str(both.exception)
    none = CliRunner().invoke(app, ["import", "csv", "lab.csv", "--out", "out"])
    assert "give --map and --out" in str(none.exception)


def test_a_task_that_nothing_tells_is_open_until_it_is_answered(suggested, tmp_path):
    text, problem = suggested("policy,side,success\na,sim,1\n")
    assert problem is not None
    assert "task" in problem
    (tmp_path / "map.yaml").write_text(text.replace("  # task: lab  #", "  task: lab  #"))
    assert [row.values["task"] for row in read_rows(tmp_path / "lab.csv", tmp_path / "map.yaml")[0]]
