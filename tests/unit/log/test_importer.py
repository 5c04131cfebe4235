"""Another lab's table becomes a trial, or is refused with file, line and column."""

import hashlib

import pytest
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.core.errors import InputError, RoboEvalError, TrialDirectoryError
from robo_eval.core.kinds import EndReason, Side
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.eval_info import import_eval_info
from robo_eval.log.evidence import Evidence
from robo_eval.log.importer import import_csv
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial
from robo_eval.metrics.attribution import attribute
from robo_eval.metrics.frame import episodes_frame
from robo_eval.metrics.scoring import quality_of

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
    assert three.start_ns is None
    assert {row.ticks for row in (one, two, three, four)} == {None}
    assert (one.costs, two.costs, four.costs) == ({"energy_j": 1500.0}, {}, {})
    assert (one.success, one.quality, two.success, two.quality) == (True, 1.0, False, 0.0)
    assert (four.end_reason, four.success, four.quality) == (EndReason.FAULT, None, None)
    assert one.policy_digest == two.policy_digest != three.policy_digest
    assert one.software.startswith("imported by robo-eval")
    assert trial.status() == "complete"
    report = verify_trial(trial.path)
    assert report.ok, report.problems
    assert report.notes == ()
    frame = trial.frame()
    assert frame["start_ns"].isna().tolist() == [False, False, True, False]
    assert frame["ticks"].isna().all()
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


@pytest.mark.parametrize(
    ("table", "more"),
    [
        pytest.param("p,s,note,,\na,1,x,,\nb,0,y,,\n", "", id="empty columns at the end"),
        pytest.param(",p,s,note,note\n0,a,1,x,y\n1,b,0,,\n", "", id="index, and a name twice"),
        pytest.param("p,s,,\na,1\nb,0,,,,\n", "", id="lines of several lengths"),
        pytest.param('#{"t_start": 1.5, "env": "C"}\np,s\na,1\nb,0\n', "", id="remark before"),
        pytest.param('# "open, 5\n# b\np,s\na,1\nb,0\n', "", id="remarks with a quote"),
        pytest.param("Lab 5\n\np,s\na,1\nb,0\n", "skip: 2\n", id="skip"),
        pytest.param("! x\np,s\na,1\n! y\nb,0\n", "comment: '!'\n", id="comment"),
        pytest.param('p,s,n\na,1,"x\n# y"\nb,0,\n', "comment: '#'\n", id="no comment in a cell"),
        pytest.param("#p,s\na,1\nb,0\n", "#", id="a header with a sign"),
        pytest.param("sep=;\np;s\na;1\nb;0\n", "", id="sep"),
        pytest.param("sep=;\np;s\na;1\nb;0\n", "delimiter: ';'\n", id="sep and delimiter"),
        pytest.param("sep=\t\r\np\ts\r\na\t1\r\nb\t0\r\n", "", id="sep of tabs"),
        pytest.param("p,s\ra,1\rb,0\r", "", id="line ends of old"),
        pytest.param("p,s\na,1\nb,0\n".encode("utf-16"), "", id="UTF-16"),
        pytest.param("\ufeffp,s\na,1\nb,0\n".encode("utf-16-be"), "", id="UTF-16, big end first"),
    ],
)
def test_what_stands_around_a_table_harms_nothing(lab, table, more):
    columns = SIMPLE.replace("policy: p", "policy: '#p'") if more == "#" else SIMPLE + more
    found = [(row.policy, row.success) for row in rows(lab(table, columns))]
    assert found == [("a", True), ("b", False)]


@pytest.mark.parametrize("quality", ["0", "0.3", "0.95"])
def test_a_score_beside_an_end_that_has_none_is_refused_with_its_remedy(lab, quality):
    columns = {"policy": "p", "quality": "q", "end_reason": "e"}
    map_ = f"columns: {columns}\nconstants: {{task: t, side: sim}}\nsuccess_quality: 0.8\n"
    with pytest.raises(InputError, match="line 2, column 'q': an episode that ended by 'fault'"):
        lab(f"p,q,e\na,{quality},fault\n", map_)


def test_a_long_cell_is_no_obstacle(lab):
    (row,) = rows(lab(f"p,s,note\na,1,{'x' * 140_000}\n", SIMPLE))
    assert row.policy == "a"


def test_truths_and_whole_numbers_that_a_table_wrote_as_floats(lab):
    words = "success: {column: s, values: {1: true, 0: false}}"
    table = rows(
        lab("p,s,n\na,1.0,3.0\na,0.0,3\n", with_columns("level: n").replace("success: s", words))
    )
    assert [(row.success, row.level) for row in table] == [(True, 3), (False, 3)]


def test_success_and_quality_that_were_judged_apart_are_both_kept(lab):
    columns = "columns: {success: s, quality: q}\nconstants: {task: t, side: sim, policy: p}\n"
    table = rows(lab("s,q\n1,1.0\n0,0.66\n0,1.0\n1,0.66\n", columns))
    assert [row.success for row in table] == [True, False, False, True]
    assert [row.quality for row in table] == [1.0, 0.66, 1.0, 0.66]


def test_only_a_share_is_told_to_be_in_percent(lab):
    columns = "columns: {policy: p, success: s, ticks: n}\nconstants: {task: t, side: sim}\n"
    with pytest.raises(InputError, match=r"column 'n': '85%' is not a number$"):
        lab("p,s,n\na,1,85%\n", columns)
    columns = columns.replace("success: s, ticks: n", "quality: n")
    with pytest.raises(InputError, match="'85%' is not a number; give unit: '%' if it is a share"):
        lab("p,s,n\na,1,85%\n", columns)


@pytest.mark.parametrize(
    ("columns", "threshold"),
    [
        ("{policy: p, quality: q}\nsuccess_quality: 0.8", 0.8),
        ("{policy: p, quality: q, success: s}", 1.0),
    ],
    ids=["by a threshold", "in the words of the other lab"],
)
def test_metrics_find_no_fault_in_what_counts_as_success_there(lab, columns, threshold):
    table = "p,q,s\na,0.85,1\na,0.8,1\na,0.3,0\n"
    trial = lab(table, f"columns: {columns}\nconstants: {{task: t, side: sim}}\n")
    assert [task.success_quality for task in trial.plan.tasks] == [threshold]
    assert attribute(Evidence(), episodes_frame(trial.frame()), trial.plan).findings == ()


def test_what_was_left_out_is_said(lab, tmp_path):
    lab("p,s\na,1\n", SIMPLE + "comment: '!'\n")
    (tmp_path / "lab.csv").write_text("# one\n# two\np,s\na,1\n!c,1\nb,\n")
    said = []
    import_csv(tmp_path / "lab.csv", tmp_path / "map.yaml", tmp_path / "other", warn=said.append)
    assert [note.partition(": ")[2] for note in said] == [
        "2 lines of remarks before the header left out",
        "1 line left out that begins with '!'",
        "1 episode without a score, counted as missing (no_verdict)",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.9999999999999999", (True, 1.0)),
        ("1.0000000000000002", (True, 1.0)),
        ("-1e-17", (False, 0.0)),
        ("0.9999999891", (False, 0.999999989)),
        ("0.99999", (False, 0.99999)),
    ],
)
def test_quality_is_rounded_like_played_quality(lab, text, expected):
    columns = BY_QUALITY.replace("0.8", "1.0") % "scale: 1"
    (row,) = rows(lab(f"p,s\na,{text}\n", columns))
    assert (row.success, row.quality) == expected
    assert quality_of(float(text), (0.0, 1.0)) == row.quality


def test_a_threshold_is_met_as_in_played_episodes(lab):
    columns = BY_QUALITY.replace("0.8", repr(1 / 3)) % "scale: 1"
    assert rows(lab(f"p,s\na,{1 / 3!r}\n", columns))[0].success


@pytest.mark.parametrize(
    ("cell", "unit"), [("85%", "%"), ("85 %", "%"), ("85", "%"), ("85.0%", "%")]
)
def test_a_number_may_carry_its_own_unit(lab, cell, unit):
    (row,) = rows(lab(f"p,s\na,{cell}\n", BY_QUALITY % f"unit: '{unit}'"))
    assert row.quality == 0.85


def test_a_percent_sign_with_a_decimal_comma(lab):
    columns = BY_QUALITY % "unit: '%'" + "delimiter: ';'\ndecimal: ','\n"
    assert rows(lab("p;s\na;84,5 %\n", columns))[0].quality == 0.845


MISSING = "columns: {policy: p, quality: q%s}\nmissing: [n/a]\nsuccess_quality: 0.85\n"


def test_a_missing_score_is_missing(lab):
    table = "p,q,end\na,0.9,ok\na,,crash\nb,n/a,crash\nb,0.7,ok\n"
    trial = lab(table, MISSING % "" + SIMPLE.split("\n")[1])
    assert [(row.quality, row.success) for row in rows(trial)] == [
        (0.9, True), (None, None), (None, None), (0.7, False),
    ]  # fmt: skip
    assert verify_trial(trial.path).ok


def test_words_of_an_end_may_leave_it_to_the_score(lab):
    words = "ok: by the score, crash: fault, late: timeout, -: ''"
    ends = f", end_reason: {{column: end, values: {{{words}}}}}"
    table = "p,q,end\na,0.9,ok\na,0.2,ok\na,,ok\na,,crash\na,0.5,late\na,0.9,\na,0.9,-\na,,-\n"
    trial = lab(table, MISSING % ends + SIMPLE.split("\n")[1])
    assert [row.end_reason.value for row in rows(trial)] == [
        "success", "failure", "no_verdict", "fault", "timeout", "success", "success", "no_verdict",
    ]  # fmt: skip
    assert [row.success for row in rows(trial)] == [
        True, False, None, None, False, True, True, None,
    ]  # fmt: skip


def with_columns(columns: str) -> str:
    return SIMPLE.replace("s}", f"s, {columns}}}")


@pytest.mark.parametrize(
    ("given", "unit"),
    [("1764585000", "ms"), ("0", "s"), ("-5", "s"), ("1980-01-01T00:00:00", "iso8601")],
)
def test_the_start_of_a_real_robot_decades_ago_is_not_known_and_said(lab, tmp_path, given, unit):
    columns = with_columns(f"start_ns: {{column: at, unit: {unit}}}")
    (kept,) = rows(lab(f"p,s,at\na,1,{given}\n", columns))
    assert kept.start_ns is not None
    real = columns.replace("side: sim", "side: real")
    (row,) = rows(lab(f"p,s,at\na,1,{given}\n", real, out="real"))
    assert row.start_ns is None
    said: list[str] = []
    import_csv(tmp_path / "lab.csv", tmp_path / "map.yaml", tmp_path / "other", warn=said.append)
    (note,) = said
    assert "lab.csv: line 2" in note
    assert "when 1 episode began is not known" in note


def test_what_no_column_gives_is_not_known(lab):
    (row,) = rows(lab("p,s\na,1\n", SIMPLE.replace("side: sim", "side: real")))
    measured = (row.start_ns, row.duration_s, row.exposure_s, row.ticks, row.episode_return)
    assert measured == (None, None, None, None, None)
    (row,) = rows(lab("p,s\na,1\n", SIMPLE.replace("side: sim", "side: twin"), out="twin"))
    assert row.exposure_s == 0.0


def test_a_zero_of_theirs_is_known(lab):
    columns = with_columns("duration_s: d, exposure_s: x, ticks: n, start_ns: b")
    trial = lab("p,s,d,x,n,b\na,1,0,0,0,0\nb,1,,,,\n", columns.replace("sim", "real"))
    zero, empty = ((row.duration_s, row.exposure_s, row.ticks) for row in rows(trial))
    assert zero == (0.0, 0.0, 0)
    assert empty == (None, None, None)
    assert verify_trial(trial.path).ok
    simulated = rows(lab("p,s,d,x,n,b\na,1,0,0,0,0\n", columns, out="sim"))
    assert simulated[0].start_ns == 0


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        (None, "1772361000123456789", 1_772_361_000_123_456_789),
        (None, "-5", -5),
        ("ns", "1772361000123456789", 1_772_361_000_123_456_789),
        ("ns", "1772361000123456789.0", 1_772_361_000_123_456_789),
        ("us", "1772361000123456.789", 1_772_361_000_123_456_789),
        ("ms", "1772361000123.456789", 1_772_361_000_123_456_789),
        ("s", "1772361000.123456789", 1_772_361_000_123_456_789),
        ("s", "1772361000", 1_772_361_000_000_000_000),
        ("s", "1.7723610001234567e9", 1_772_361_000_123_456_700),
        ("min", "29539350", 1_772_361_000_000_000_000),
        ("iso8601", "2026-03-01T10:30:00.123456789Z", 1_772_361_000_123_456_789),
        ("iso8601", "2026-03-01 11:30:00,1234567+01:00", 1_772_361_000_123_456_700),
        ("iso8601", "20260301T103000.123456", 1_772_361_000_123_456_000),
        ("iso8601", "1969-12-31T23:59:59.999999999", -1),
    ],
)
def test_a_start_is_exact_in_its_unit(lab, unit, text, expected):
    source = "w" if unit is None else f"{{column: w, unit: {unit}}}"
    columns = with_columns(f"start_ns: {source}") + "delimiter: ';'\n"
    (row,) = rows(lab(f"p;s;w\na;1;{text}\n", columns))
    assert row.start_ns == expected


def test_a_scaled_start(lab):
    columns = with_columns("start_ns: {column: w, unit: s, scale: 0.001}")
    (row,) = rows(lab("p,s,w\na,1,1772361000123\n", columns))
    assert row.start_ns == 1_772_361_000_123_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [("12", 12), ("12.0", 12), ("+12.", 12), ("1.2e1", 12), ("9007199254740991", 2**53 - 1)],
)
def test_whole_numbers(lab, text, expected):
    (row,) = rows(lab(f"p,s,n\na,1,{text}\n", with_columns("ticks: n")))
    assert row.ticks == expected


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("57", "%", 0.57),
        ("35", "%", 0.35),
        ("+.5", None, 0.5),
        ("5.E-1", None, 0.5),
        ("0e99999999999999999999", None, 0.0),
        ("1e-99999999999999999999", None, 0.0),
    ],
)
def test_shares_are_what_they_say(lab, text, unit, expected):
    source = "s" if unit is None else f"{{column: s, unit: '{unit}'}}"
    columns = f"columns: {{policy: p, quality: {source}}}\nsuccess_quality: 0.57\n"
    (row,) = rows(lab(f"p,s\na,{text}\n", columns + "constants: {task: t, side: sim}\n"))
    assert row.quality == expected
    assert row.success == (expected >= 0.57)


@pytest.mark.parametrize(
    ("column", "unit"),
    [("duration_s", "h"), ("exposure_s", "ns"), ("start_ns", "ms"), ("quality", "'%'"),
     ("stated_success_probability", "'%'"), ("costs.energy_j", "kWh"),
     ("costs.wear", "'%'"), ("control_quality.path_m", "mm")],
)  # fmt: skip
def test_units_of_the_right_kind(lab, column, unit):
    columns = with_columns(f"{column}: {{column: v, unit: {unit}}}")
    assert len(rows(lab("p,s,v\na,1,100\n", columns))) == 1


def test_attempts_of_one_episode_of_which_one_is_scored(lab):
    table = (
        "i,n,p,e\nx,1,a,void\nx-a2,2,a,fault\nx-a3,3,a,success\ny-a2,1,a,failure\ny,1,a,success\n"
    )
    columns = "columns: {episode_id: i, attempt: n, policy: p, end_reason: e}\n"
    trial = lab(table, columns + "constants: {task: t, side: sim}\n")
    assert len(rows(trial)) == 5


ASSISTED = "columns: {policy: p, success: s, quality: q, interventions: h}\n"


def test_an_assisted_success_is_a_failure_where_the_map_says_so(lab):
    columns = f"{ASSISTED}assisted_success: failure\nconstants: {{task: t, side: real}}\n"
    trial = lab("p,s,q,h\na,1,,2\na,1,0.9,1\na,1,1,0\na,0,0.2,3\n", columns)
    found = [(row.success, row.quality, row.end_reason, row.interventions) for row in rows(trial)]
    assert found == [
        (False, 0.0, EndReason.FAILURE, 2),
        (False, 0.9, EndReason.FAILURE, 1),
        (True, 1.0, EndReason.SUCCESS, 0),
        (False, 0.2, EndReason.FAILURE, 3),
    ]
    assert verify_trial(trial.path).ok
    assert len(episodes_frame(trial.frame())) == 4
    assert trial.plan.imported.column_map["assisted_success"] == "failure"


def test_a_seed_may_be_any_number_of_64_bits(lab):
    (row,) = rows(lab(f"p,s,n\na,1,{2**63 - 1}\n", with_columns("seed: n")))
    assert row.seed == 2**63 - 1


ATTEMPTS = "columns: {episode_id: i, attempt: n, policy: p, success: s}\n" + SIMPLE.split("\n")[1]
TIMED = with_columns("start_ns: c")

# A cell, how the map reads its column, and what the refusal says of it.
BAD_CELLS = [
    ("-3", "duration_s: c", "'-3' is negative"),
    ("fast", "duration_s: c", "'fast' is not a number"),
    ("1_000", "duration_s: c", "'1_000' is not a number"),
    ("1_0e999", "duration_s: c", "'1_0e999' is not a number"),
    ("nan", "duration_s: c", "'nan' is not a finite number"),
    ("1e999", "duration_s: c", "'1e999' is not a finite number"),
    ("-Infinity", "duration_s: c", "'-Infinity' is not a finite number"),
    ("1e308", "duration_s: {column: c, unit: h}", "'1e308' is not a finite number"),
    ("1e308", "duration_s: c", "at most 1000000000000 s; check unit and scale"),
    ("5ms", "duration_s: {column: c, unit: s}", "'5ms' is not a number"),
    ("1e9", "exposure_s: {column: c, unit: h}", r"gives 3.6e\+12 s; exposure_s can be at most"),
    ("3.5", "ticks: c", "'3.5' is not a whole number"),
    ("1_2", "ticks: c", "'1_2' is not a number"),
    ("١٢", "ticks: c", "'١٢' is not a number"),
    ("0x10", "ticks: c", "'0x10' is not a number"),
    (f"{2**53}", "ticks: c", "ticks can be at most 9007199254740991"),
    (f"{2**63}", "ticks: c", "does not fit into 64 bits"),
    (f"{2**53 + 1}", "level: c", "level can be at most"),
    ("1.23457E+18", "seed: c", "has lost its last 13 digits"),
    ("7", "quality: c", r"gives 7, which is outside \[0, 1\]; give unit: '%'"),
    ("0", "quality: c", "contradicts success True"),
    ("timout", "end_reason: c", "did you mean 'timeout'"),
    ("hrad", "difficulty: c", "did you mean 'hard'"),
    ("1772361000.5", "start_ns: c", "not whole nanoseconds; give unit: s, ms, us, ns"),
    ("1.7e18", "start_ns: c", "'1.7e18' is not whole nanosec"),
    ("2026-03-01", "start_ns: c", "ns, iso8601 or excel"),
    ("1_000", "start_ns: c", "'1_000' is not whole nanoseconds"),
    ("1772361000", "start_ns: c", "in s since 1970; give unit: s"),
    ("1772361000123", "start_ns: c", "in ms since 1970; give unit: ms"),
    ("1772361000123456", "start_ns: c", "in us since 1970; give unit: us"),
    (f"{2**63}", "start_ns: c", "is outside the years 1678 to 2261"),
    ("5.5", "start_ns: {column: c, unit: ns}", "'5.5' is not whole nanoseconds"),
    ("1.7e9", "start_ns: {column: c, unit: ns}", "write all digits, or give the unit"),
    ("1.77236E+18", "start_ns: {column: c, unit: ns}", "is not whole nanoseconds"),
    ("1.77236E+09", "start_ns: {column: c, unit: s}", "has lost its last 4 digits"),
    ("1.77236E+12", "start_ns: {column: c, unit: ms}", "has lost its last 7 digits"),
    ("1e300", "start_ns: {column: c, unit: s}", "is outside the years"),
    ("2300-01-01", "start_ns: {column: c, unit: iso8601}", "is outside the years"),
    ("yesterday", "start_ns: {column: c, unit: iso8601}", "'yesterday' is not a date"),
]


@pytest.mark.parametrize(("cell", "column", "reason"), BAD_CELLS)
def test_a_bad_cell_is_refused_by_its_place_and_leaves_nothing(refused, cell, column, reason):
    place = "lab.csv: line 2, column 'c': "
    refused(f"p,s,c\na,1,{cell}\n", with_columns(column), f"{place}.*{reason}")


BAD_TABLES = {
    "two scored attempts": (
        "i,n,p,s\nx,1,a,0\ny,1,a,1\nx-a2,2,a,1\n", ATTEMPTS,
        "line 4, column 'n': 'x-a2' and 'x' in line 2",
    ),
    "two scored attempts, the later first": (
        "i,n,p,s\nx-a3,3,a,0\nx-a2,2,a,1\n", ATTEMPTS,
        "line 3, column 'n': 'x-a2' and 'x-a3' in line 2",
    ),
    "assisted success": (
        "p,s,h\na,0,2\na,1,2\n", with_columns("interventions: h"),
        "line 3, column 'h': .* set assisted_success: failure in the column map",
    ),
    "other delimiter": ("p;s\na;1\n", SIMPLE, "line 1: ',' .* set delimiter: ';' in the column"),
    "tabs": ("p\ts\na\t1\n", SIMPLE, "set delimiter: tab in the column map"),
    "commas": ("p,s\na,1\n", SIMPLE + "delimiter: ';'\n", "set delimiter: ',' in the column map"),
    "Latin-1": ("p,s\na,1\nJörg,1\n".encode("latin-1"), SIMPLE, "line 3: .*byte 0xf6; save it as"),
    "constant start": (
        "p,s\na,1\n", SIMPLE.replace("side: sim", "side: sim, start_ns: 1.5"),
        "constants.start_ns of the column map: '1.5' is not whole nanoseconds$",
    ),
    "start out of range": (f"p,s,c\na,1,5\nb,1,{2**63}\n", TIMED, "line 3, column 'c': .*years"),
    "thousands with a point": (
        "p;s;d\na;1;1.000\n", with_columns("duration_s: d") + "delimiter: ';'\ndecimal: ','\n",
        "column 'd': '1.000' is not a number with the decimal sign ','",
    ),
    "missing column": ("p,q\na,1\n", SIMPLE, "line 1: unknown column 's'.*mapped to 'success'"),
    "misspelt column": (
        "policy,sucess\na,1\n", SIMPLE.replace("s}", "success}").replace(" p,", " policy,"),
        "did you mean 'sucess'",
    ),
    "column twice": ("p,s,p\na,1,b\n", SIMPLE, "column 'p' appears twice"),
    "empty file": ("", SIMPLE, "is empty; it needs a header"),
    "header only": ("p,s\n", SIMPLE, "holds no episodes"),
    "not text": (b"p,s\n\xff\xfe,1\n", SIMPLE, "is not UTF-8 text"),
    "zero byte": (b"p,s\na\x00,1\n", SIMPLE, ""),
    "open quote": ('p,s\n"a,1\n', SIMPLE, "is not CSV"),
    "short line": ("p,s\na,1\nb\n", SIMPLE, "line 3: has 1 cells, the header has 2"),
    "long line": ("p,s\na,1,2\n", SIMPLE, "line 2: has 3 cells"),
    "failure with full quality": (
        "p,s,q\na,no,1.0\n", with_columns("quality: q") + "success_quality: 1.0\n",
        "quality 1 contradicts success False; leave success_quality out of the map if",
    ),
    "below its own threshold": (
        "p,s,q\na,yes,0.7\n", with_columns("quality: q") + "success_quality: 0.8\n",
        "quality 0.7 contradicts success True; leave success_quality out",
    ),
    "success against end reason": (
        "p,s,e\na,yes,timeout\n", with_columns("end_reason: e"),
        "line 2, column 's': .*contradicts end_reason 'timeout'",
    ),
    "unclear success": ("p,s\na,maybe\n", SIMPLE, "line 2, column 's': 'maybe' is neither"),
    "no rule of success": (
        "p,q\na,\na,0.5\n", SIMPLE.replace("success: s", "quality: q"),
        "line 3, column 'q': .* cannot be told from quality alone; give success_",
    ),
    "a remark among the rows": ("p,s\na,1\n# end\n", SIMPLE, "line 3: .*set comment in the column"),
    "two monitor files joined": (
        'p,s\na,1\n#{"t_start": 1.5, "env_id": "x", "n": 2}\np,s\nb,0\n', SIMPLE,
        "two tables were joined: import each",
    ),
    "preface without a sign": (
        "Lab 5\nRig,2\n\np,s\na,1\n", SIMPLE, "line 1: .* in line 4; set skip: 3 in the column map"
    ),
    "percent sign without its unit": (
        "p,s\na,85%\n", BY_QUALITY % "scale: 1", "line 2, column 's': '85%' .*; give unit: '%'"
    ),
    "UTF-16 without its mark": ("p,s\na,1\n".encode("utf-16-le"), SIMPLE, "line 1: holds NUL"),
    "skip beyond the end": ("p,s\n", SIMPLE + "skip: 9\n", "only holds lines that are left out"),
    "quote in the middle": ('p,s\na,1\nb,"a"b"\nc,0\n', SIMPLE, "line 3: is not CSV"),
    "quote in a record of several lines": (
        'p,s\n"a\n\nb",1\n"c\nd"x,0\n', SIMPLE, "line 5: is not CSV"
    ),
    "quote that stays open": ('p,s\na,1\n"b,1\nc,1\n', SIMPLE, "line 3: is not CSV"),
    "bad cell after a cell of several lines": (
        'p,s\n"a\nb",1\n"c\nd",maybe\n', SIMPLE, "line 4, column 's': 'maybe' is neither"
    ),
    "UTF-16 that is cut short": ("p,s\na,1\n".encode("utf-16")[:-1], SIMPLE, "cut short.*UTF-8"),
    "word without value": (
        "p,s\na,perhaps\n",
        SIMPLE.replace("success: s", "success: {column: s, values: {yes: true}}"),
        "line 2, column 's': unknown value 'perhaps'",
    ),
    "empty policy": ("p,s\n,1\n", SIMPLE, "line 2, column 'p': is empty; policy is needed"),
    "policy no plan can name": ("p,s\na b,1\n", SIMPLE, "policies.*rename it with `values`"),
    "double id": (
        "i,p,s\nx,a,1\ny,a,1\nx,a,0\n", SIMPLE.replace("{policy", "{episode_id: i, policy"),
        "line 4, column 'i': 'x' is in line 2 already",
    ),
    "wrong constant": ("p,s\na,1\n", SIMPLE.replace("side: sim", "side: sm"), "mean 'sim'"),
}  # fmt: skip


@pytest.fixture
def refused(lab, tmp_path):
    """Import what has to be refused in one line, and leave nothing."""

    def run(table: str | bytes, columns: str | bytes, said: str) -> None:
        with pytest.raises(InputError, match=said) as caught:
            lab(table, columns)
        assert len(str(caught.value).splitlines()) == 1
        assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.csv", "map.yaml"]

    return run


@pytest.mark.parametrize("name", BAD_TABLES)
def test_a_bad_table_is_refused_and_leaves_nothing(refused, name):
    table, columns, reason = BAD_TABLES[name]
    refused(table, columns, rf"lab\.csv: (?s:.*){reason}")


# The source of a column of ours, and what is said of it.
BAD_SOURCES = [
    ("plan_digest", "s", "unknown column 'plan_digest'"),
    ("sucess", "s", "did you mean 'success'"),
    ("costs", "s", "must be written as 'costs.<name>'"),
    ("policy.x", "s", "must be written as 'policy'"),
    ("success", "{colum: s}", "did you mean 'column'"),
    ("success", "{values: {a: b}}", "column: is missing"),
    ("duration_s", "{column: s, unit: mins}", "did you mean 'min'"),
    ("duration_s", "{column: s, unit: kWh}", "unit: .* valid: ns, us, ms, s, min, h$"),
    ("duration_s", "{column: s, unit: iso8601}", "'iso8601' .*valid: ns, us, ms, s, min, h$"),
    ("exposure_s", "{column: s, unit: '%'}", "valid: ns, us, ms"),
    ("start_ns", "{column: s, unit: m}", "'m' .* ns, us, ms, s, min, h, iso8601, excel$"),
    ("quality", "{column: s, unit: s}", "unit: 's' .* valid: %$"),
    ("quality", "{column: s, unit: [s]}", "unit: must"),
    ("ticks", "{column: s, unit: min}", "unit: ticks has no unit; leave it out"),
    ("policy", "{column: s, unit: s}", "policy has no unit"),
    ("episode_return", "{column: s, unit: J}", "has no unit"),
    ("costs.energy_j", "{column: s, unit: kJoule}", "unknown unit 'kJoule'"),
    ("costs.x", "{column: s, unit: iso8601}", "no unit of costs; valid"),
    ("policy", "{column: s, scale: 2}", "policy is not a number"),
    ("start_ns", "{column: s, scale: 1000}", "scale: .* add unit: s, ms, us or ns"),
    ("start_ns", "{column: s, unit: iso8601, scale: 2}", "scale: "),
    ("ticks", "{column: s, scale: 1_000}", "scale: .*, given '1_000'"),
    ("ticks", "{column: s, scale: many}", "not a finite number"),
    ("start_ns", "{column: s, unit: s, formats: ['%Y']}", "formats: .* without a unit"),
    ("duration_s", "{column: s, formats: ['%Y']}", "formats: are of a start_ns"),
]


@pytest.mark.parametrize(("ours", "source", "reason"), BAD_SOURCES)
def test_a_bad_source_of_a_column_is_refused_and_leaves_nothing(refused, ours, source, reason):
    said = rf"map\.yaml: columns\.{ours}.*{reason}"
    refused("p,s\na,1\n", f"columns: {{{ours}: {source}}}\n", said)


BAD_MAPS = {
    "skip that is not a number": (SIMPLE + "skip: header\n", "skip: .*, given 'header'"),
    "comment that is not text": (SIMPLE + "comment: [a]\n", "comment: must be text"),
    "comment of two lines": (SIMPLE + 'comment: "a\\nb"\n', "comment: must be what such lines"),
    "not yaml": ("columns: [", "not valid YAML"),
    "not text": (b"\xff\x00", "line 1: is not UTF-8 text: byte 0xff; save it as UTF-8"),
    "no mapping": ("- a\n", "a column map is a mapping of keys to values"),
    "empty": ("", "a column map is a mapping"),
    "no columns": ("constants: {task: t}\n", "columns: is missing"),
    "unknown key": ("colums: {policy: p}\n", "unknown key 'colums'; did you mean 'columns'"),
    "threshold with an underscore": ("columns: {policy: p}\nsuccess_quality: 0_1\n", "given '0_1'"),
    "given twice": (
        "columns: {policy: p}\nconstants: {policy: x}\n",
        "'policy' is in columns and in constants",
    ),
    "bad delimiter": ("columns: {policy: p}\ndelimiter: ab\n", "delimiter: must be one character"),
    "bad word for assisted": (
        "columns: {policy: p}\nassisted_success: fail\n",
        "assisted_success: .* did you mean 'failure'",
    ),
    "list for assisted": (
        "columns: {policy: p}\nassisted_success: [a]\n", "assisted_success: must be"
    ),
    "bad missing": ("columns: {policy: p}\nmissing: NA\n", "missing: must be a list"),
    "thousands that are decimals": (SIMPLE + "thousands: '.'\n", "thousands: is the decimal sign"),
    "thousands that are digits": (SIMPLE + "thousands: '0'\n", "thousands: '0' is part of numbers"),
    "no zone": (SIMPLE + "zone: Berlin\n", "zone: 'Berlin' is no zone; write it like Europe/"),
    "bad threshold": ("columns: {policy: p}\nsuccess_quality: 2\n", "success_quality"),
    "constant that is a list": (
        "columns: {policy: p}\nconstants: {task: [a]}\n", "constants.task: must be text"
    ),
    "no policy": ("columns: {success: s}\nconstants: {task: t, side: sim}\n", "about 'policy'"),
    "no score": (
        "columns: {policy: p}\nconstants: {task: t, side: sim}\n", "success, end_reason or quality"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_MAPS)
def test_a_bad_map_is_refused_and_leaves_nothing(refused, name):
    content, reason = BAD_MAPS[name]
    refused("p,s\na,1\n", content, rf"map\.yaml: .*{reason}")


def test_an_existing_directory_is_refused(lab, tmp_path):
    before = (lab().path / "manifest.json").read_bytes()
    expected = r"/out: exists already and is not empty; choose another --out$"
    with pytest.raises(TrialDirectoryError, match=expected):
        lab()
    assert (tmp_path / "out/manifest.json").read_bytes() == before
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis/chapter.tex").write_text("precious")
    with pytest.raises(TrialDirectoryError, match="choose another --out"):
        lab(out="thesis")
    (tmp_path / "empty").mkdir()
    assert len(rows(lab(out="empty"))) == 4


def test_missing_files_are_named(tmp_path, lab):
    with pytest.raises(RoboEvalError, match=r"no\.csv: cannot be read"):
        import_csv(tmp_path / "no.csv", tmp_path / "no.yaml", tmp_path / "out")
    (tmp_path / "no.csv").write_text(TABLE)
    with pytest.raises(RoboEvalError, match=r"no\.yaml: no such column map file"):
        import_csv(tmp_path / "no.csv", tmp_path / "no.yaml", tmp_path / "out")


@pytest.mark.parametrize(
    ("run", "head", "right"),
    [
        (import_csv, b"PK\x03\x04timesteps.npy", "import eval-info reads an .npz"),
        (import_csv, b'{"per_episode": []}', "robo-eval import eval-info reads"),
        (import_csv, b"\x89MCAP0\r\n", "robo-eval import bag reads it"),
        (import_eval_info, b"r,l,t\n1,2,3\n", "robo-eval import csv reads"),
    ],
)
def test_a_file_of_another_importer_is_judged_before_the_map(tmp_path, run, head, right):
    (tmp_path / "file").write_bytes(head)
    (tmp_path / "map.yaml").write_text("nonsense: 1")
    with pytest.raises(InputError, match=right):
        run(tmp_path / "file", tmp_path / "map.yaml", tmp_path / "out")


def test_a_failing_disk_leaves_nothing(lab, tmp_path, monkeypatch):
    def full(*_args):
        raise TrialDirectoryError("episodes.db: the disk is full")

    monkeypatch.setattr(EpisodeStore, "append", full)
    with pytest.raises(TrialDirectoryError, match="full"):
        lab()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["lab.csv", "map.yaml"]


@pytest.mark.parametrize(
    ("change", "n"),
    [
        (("side: real", "side: real"), 4),
        (("side: real, robot: arm_1", "side: sim"), 0),
        (("  start_ns", "  exposure_s: {column: minutes, unit: min}\n  start_ns"), 0),
        (("  duration_s: {column: minutes, unit: min}\n", ""), 0),
    ],
    ids=["real", "simulated", "exposed", "untimed"],
)
def test_real_durations_without_exposure_are_hinted_at_the_end(tmp_path, change, n):
    (tmp_path / "lab.csv").write_text(TABLE)
    (tmp_path / "map.yaml").write_text(MAP.replace(*change))
    given = [str(tmp_path / name) for name in ("lab.csv", "map.yaml", "out")]
    done = CliRunner().invoke(
        app, ["import", "csv", given[0], "--map", given[1], "--out", given[2]]
    )
    assert done.exit_code == 0, done.exception
    assert ("exposure_s" in done.stdout) == bool(n)
    assert (f"{n} real episodes with a duration" in done.stdout) == bool(n)
