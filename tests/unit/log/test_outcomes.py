"""Outcomes beside recordings join the episodes they name; what has no partner is counted."""

import json

import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.importer import import_csv

MAP = """
columns: {episode_id: run, policy: model}
constants: {task: push, side: sim}
outcomes: OUTCOMES
"""
SHEET = "file,ok,hands\nbags/monday/run_1.mcap,yes,0\nrun_2,no,1\n3,yes,0\n"


@pytest.fixture
def joined(tmp_path):
    """Import a table with outcomes beside it: the end of each episode, and what was said."""

    def run(outcomes, files, table, columns=MAP):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        (tmp_path / "table.csv").write_text(table)
        (tmp_path / "map.yaml").write_text(columns.replace("OUTCOMES", outcomes))
        notes: list[str] = []
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        trial = import_csv(tmp_path / "table.csv", tmp_path / "map.yaml", out, warn=notes.append)
        frame = trial.frame().set_index("episode_id")
        return dict(frame["end_reason"]), notes, frame

    return run


PLAIN = "run,model\nrun_1,act\nrun_2,act\n3,pi0\n"
GOOD = {"run_1": "success", "run_2": "failure", "3": "success"}
LIST = (
    '[{"id": "run_1.mcap", "success": true}, {"id": "run_2", "success": 0.0},'
    ' {"id": 3, "success": 1.0}]'
)
PARTS = {
    name: {"result": {"outcome": end}, "taught": [1], "deep": {"er": {"x": 1}}}
    for name, end in GOOD.items()
}
CONSOLE = """
version: 1
tasks: [{prompt: push}]
episodes:
- {id: run_1, success: true, note: a}
- {id: run_2, success: false}
- {id: '3', success: yes}
"""
WORDS = "{file: s.csv, columns: {success: {column: ok, values: {yes: true, no: false}}}}"
FORMS = {
    "key": ("{file: s.csv, key: file, columns: {success: ok}}", SHEET),
    "id": ("{file: s.csv, columns: {episode_id: file, success: ok}}", SHEET),
    "words": (WORDS, SHEET),
    "semicolons": ("{file: s.csv, columns: {success: ok}, delimiter: ;}", SHEET.replace(",", ";")),
    "sheet": ("s.csv", SHEET.replace("ok", "success")),
    "text": ("success.txt", "run_1 1\nrun_2: 0\n\n003,true\n"),
    "truths": ("o.json", '{"run_1": true, "run_2": false, "3": true}'),
    "ends": ("o.json", json.dumps(GOOD)),
    "list": ("o.json", LIST),
    "parts": ("{file: o.json, columns: {end_reason: result.outcome}}", json.dumps(PARTS)),
    "console": ("eval_metadata.yaml", CONSOLE),
}


@pytest.mark.parametrize("form", FORMS)
def test_outcomes_join_in_each_form(joined, form):
    outcomes, text = FORMS[form]
    name = outcomes.partition("file: ")[2].partition(",")[0] or outcomes
    ends, notes, _ = joined(outcomes, {name: text}, PLAIN)
    assert ends == GOOD
    assert notes == []


@pytest.mark.parametrize(
    ("pattern", "names", "text"),
    [
        ("runs/*/success.txt", "runs/{}/success.txt", "{}\n"),
        ("runs/*.json", "runs/{}.json", '{{"success": {}, "notes": [1]}}'),
        ("runs/*.yaml", "runs/{}.yaml", "success: {}\n"),
    ],
)
def test_one_file_for_each_episode_joins_by_its_place(joined, pattern, names, text):
    said = {"run_1": "true", "run_2": "false", "3": "true"}
    files = {names.format(run): text.format(word) for run, word in said.items()}
    assert joined(f"'{pattern}'", files, PLAIN)[0] == GOOD


def test_a_file_of_values_alone_counts_the_episodes(joined):
    table = "run,model\n0,act\n1,act\n"
    assert joined("success.txt", {"success.txt": "1\n0\n"}, table)[0] == {
        "0": "success",
        "1": "failure",
    }


def test_names_with_folders_are_told_apart(joined):
    table = "run,model\nmonday/run,act\ntuesday/run,act\n"
    sheet = "id,success\nlab/tuesday/run,1\n"
    with pytest.raises(InputError, match=r"s\.csv: line 2: 'lab/tuesday/run' is none of"):
        joined("s.csv", {"s.csv": sheet}, table)
    ends, _, _ = joined("s.csv", {"s.csv": "id,success\ntuesday/run,1\n"}, table)
    assert ends == {"monday/run": "no_verdict", "tuesday/run": "success"}
    with pytest.raises(InputError, match="line 2: 'run' names two episodes, monday/run and tues"):
        joined("s.csv", {"s.csv": "id,success\nrun,1\n"}, table)


def test_what_finds_no_partner_is_counted_on_both_sides(joined):
    ends, notes, _ = joined("s.csv", {"s.csv": "id,success\nrun_1,0\nrun_7,1\n"}, PLAIN)
    assert ends == {"run_1": "failure", "run_2": "no_verdict", "3": "no_verdict"}
    assert any("1 line of 2 without an episode: run_7" in note for note in notes)
    assert any("says nothing of 2 episodes: run_2, 3" in note for note in notes)
    assert any("2 episodes without a score" in note for note in notes)


def test_other_columns_join_too(joined):
    columns = "{file: s.csv, key: file, columns: {success: ok, operator: hands}}"
    _, _, rows = joined(columns, {"s.csv": SHEET}, PLAIN)
    assert rows["operator"].tolist() == ["0", "1", "0"]


def test_the_digest_of_the_import_covers_the_outcomes(joined):
    sheets = [SHEET, SHEET.replace("run_2,no", "run_2,yes")]
    column = "{file: s.csv, key: file, columns: {success: ok}}"
    digests = {joined(column, {"s.csv": one}, PLAIN)[2]["policy_digest"].iloc[0] for one in sheets}
    assert len(digests) == 2


BAD = {
    "no file": ("s.csv", None, r"s\.csv: no such file of outcomes"),
    "no files": ("'*/s.txt'", None, r"s\.txt: no such file of outcomes"),
    "twice": ("s.csv", "id,success\nrun_1,1\nrun_1.mcap,0\n", "line 2: is about run_1.*line 3"),
    "no name": ("s.csv", "id,success\n,1\n", "line 2, column 'id': is empty"),
    "a word": ("s.csv", "id,success\nrun_1,maybe\n", "line 2, column 'success': 'maybe'"),
    "no key": ("s.csv", "what,success\nrun_1,1\n", r"s\.csv: unknown column 'episode_id'.*key"),
    "no column": (
        "{file: s.csv, columns: {success: oky}}", "id,ok\nrun_1,1\n",
        r"s\.csv: unknown column 'oky'; did you mean 'ok'",
    ),
    "nobody": ("s.csv", "id,success\nother,1\n", r"line 2: 'other' is none.*outcomes\.key"),
    "no JSON": ("o.json", "{", r"o\.json: is not JSON"),
    "no list": ("o.json", "3", r"o\.json: holds no list of episodes"),
    "two lists": ("o.json", '{"a": [{"id": 1}], "b": [{"id": 1}]}', "which list.*a, b"),
    "no YAML": ("o.yaml", "{", r"o\.yaml: not valid YAML"),
    "signs": ("success.txt", "a=:\n", r"success\.txt: line 1: write an episode"),
    "both": ("{file: s.csv, columns: {policy: ok}}", "", "'policy' is in columns and in outcomes"),
    "no outcome": ("{file: s.csv, columns: {operator: ok}}", "", "must say where success"),
    "unknown key": ("{file: s.csv, kee: a}", "", "outcomes.*kee"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_outcomes_that_cannot_be_used_are_refused(joined, case):
    outcomes, text, reason = BAD[case]
    name = outcomes.partition("file: ")[2].partition(",")[0] or outcomes
    with pytest.raises(InputError, match=reason):
        joined(outcomes, {} if text is None else {name: text}, PLAIN)


def test_an_outcome_said_twice_needs_columns(joined):
    both = MAP.replace("{task", "{success: 1, task")
    with pytest.raises(InputError, match="outcomes: success is in constants already"):
        joined("s.csv", {"s.csv": SHEET}, PLAIN, both)


NUMBERED = "run,model\nepisode_000000,act\nepisode_000001,act\n"


def test_the_column_that_names_the_episodes_is_found(joined):
    sheet = "id,file,success\n0,data/episode_000001.parquet,1\n1,data/episode_000000.parquet,0\n"
    ends, _, _ = joined("s.csv", {"s.csv": sheet}, NUMBERED)
    assert list(ends.values()) == ["failure", "success"]


def test_columns_that_name_different_episodes_are_refused(joined):
    table = "run,model\n0,act\n1,act\n"
    with pytest.raises(InputError, match=r"columns id, file name different.*set outcomes\.key"):
        joined("s.csv", {"s.csv": "id,file,success\n0,1.mcap,1\n1,0.mcap,0\n"}, table)
    sheet = "id,file,success\n0,Run_1.MCAP,1\n1,Run_0.MCAP,0\n"
    with pytest.raises(InputError, match=r"names two episodes.*outcomes\.key"):
        joined("u.csv", {"u.csv": sheet}, "run,model\n0,act\n1,act\nrun_1,act\nrun_0,act\n")
    ends, _, _ = joined(
        "{file: t.csv, key: file}", {"t.csv": "id,file,success\n0,1.mcap,1\n1,0.mcap,0\n"}, table
    )
    assert list(ends.values()) == ["failure", "success"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.csv", "id,success\n0.0,1\n1.00,0\n"),
        ("s.json", "[true, false]"),
        ("s.json", '{"episodes": [true, false]}'),
        ("s.yaml", "- true\n- false\n"),
        ("s.txt", "# by hand\nsuccess  # well done\n\n// here\nfailure\n"),
        ("s.txt", "# by hand\n0 success\n1: failure # dropped\n"),
    ],
)
def test_numbers_and_order_name_episodes(joined, name, text):
    ends, notes, _ = joined(name, {name: text}, "run,model\n0,act\n1,act\n")
    assert list(ends.values()) == ["success", "failure"]
    assert notes == []


def test_upper_case_and_archives_are_the_same_names(joined):
    table = "run,model\nrun_a,act\nRun_B.MCAP,act\n"
    ends, _, _ = joined(
        "s.csv", {"s.csv": "file,success\nRUN_A.tar.gz,1\nrun_b.bag.zip,0\n"}, table
    )
    assert list(ends.values()) == ["success", "failure"]
    ends, _, _ = joined(
        "t.csv", {"t.csv": "id,success\nRUN,1\nrun,0\n"}, "run,model\nrun,act\nRUN,act\n"
    )
    assert ends == {"run": "failure", "RUN": "success"}


def test_zeros_before_a_number_are_left_out_where_nothing_is_written_the_same(joined):
    sheet = "id,success\nepisode_0,1\nepisode_01,0\n"
    ends, _, _ = joined("s.csv", {"s.csv": sheet}, NUMBERED)
    assert list(ends.values()) == ["success", "failure"]
    sheet = "id,success\nrun_1,1\nrun_01,0\n"
    ends, _, _ = joined("t.csv", {"t.csv": sheet}, "run,model\nrun_01,act\nrun_1,act\n")
    assert ends == {"run_01": "failure", "run_1": "success"}
