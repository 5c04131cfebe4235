"""A map is suggested: a plain table imports by it as it is, and what is unsure is asked."""

import csv
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.core.errors import InputError
from robo_eval.log.column_map import ColumnMap
from robo_eval.log.import_suggest import _NAMES, suggest_map
from robo_eval.log.importer import import_csv
from robo_eval.log.store import EpisodeStore

PLAIN = """Episode,Model,Task,Seed,Success,Score,Duration (s),Date,Note
1,pi0,cup,3,TRUE,1.0,12.5,2026-03-01 10:30,fine
2,act,cup,3,FALSE,0.5,NA,2026-03-01 10:31,"fell, twice"
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
    assert (one.policy, one.task, one.seed, one.success, one.quality) == ("pi0", "cup", 3, True, 1)
    assert (one.duration_s, two.duration_s, two.success) == (12.5, None, False)
    assert two.start_ns - one.start_ns == 60 * 10**9


def test_what_the_table_does_not_say_is_asked(suggested):
    text, problem = suggested("id,s,minutes\na,1,2\nb,0,3\n")
    assert problem is None
    assert "policy: lab  # whose episodes are they?" in text
    assert "side: sim  # was it played in sim, twin or real?" in text
    assert "duration_s: {column: minutes, unit: min}" in text


def test_a_table_of_a_german_spreadsheet(suggested, tmp_path):
    text, problem = suggested(GERMAN)
    assert problem is None
    found = ColumnMap.read(tmp_path / "map.yaml")
    assert (found.delimiter, found.decimal) == (";", ",")
    assert found.columns["success"].values == {"ja": "true", "nein": "false"}
    assert found.columns["start_ns"].formats == ("%d.%m.%Y",)
    assert "# not used: Lauf, Aufgabe, status" in text


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("id,success,date\na,1,03/05/2026\nb,1,04/06/2026\n", "  # start_ns: date  # how is it"),
        ("id,success,time\na,1,3\nb,0,4\n", "  # duration_s: time  # in which unit?"),
        ("id,outcome\na,great\nb,poor\n", "  # success: outcome  # which of its words are true"),
        ("id,score\na,7\nb,9\n", "  # quality: score  # is it a share from 0 to 1?"),
        ("id,grasped\na,1\nb,0\n", "  # success: grasped  # does it say so?"),
        ("id,success\na,1\na,0\n", "  # episode_id: id  # it is not another one in every line"),
        ("id,model,success\na,my pi0,1\n", "  # policy: model  # which names of letters"),
    ],
)
def test_what_is_unsure_is_a_comment_with_a_question(suggested, table, line):
    text, _ = suggested(table)
    assert [found for found in text.splitlines() if found.startswith(line)]


def test_sums_and_named_starts_are_found(suggested):
    text, problem = suggested("model,task,success_rate,n_trials\npi0,cup,90%,10\nact,cup,20%,10\n")
    assert problem is None
    assert "rate: {column: success_rate, unit: '%'}" in text
    assert "trials: n_trials" in text


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
        is_missing = problem is not None and "must say where" in problem
        assert is_missing or ColumnMap.read(out).columns


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
    assert "It cannot import the table yet: map.yaml: must say where success" in done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lab.csv", "map.yaml"]
    both = CliRunner().invoke(
        app, ["import", "csv", "lab.csv", "--suggest", "m.yaml", "--out", "out"]
    )
    assert "leave --map and --out out" in str(both.exception)
    none = CliRunner().invoke(app, ["import", "csv", "lab.csv", "--out", "out"])
    assert "give --map and --out" in str(none.exception)
