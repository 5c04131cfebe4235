"""Tables in which a line is not one episode: sums, a column for each policy, starts with names."""

import pytest

from robo_eval.core.errors import InputError
from robo_eval.log.import_row import start_of
from robo_eval.log.importer import import_csv
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial


@pytest.fixture
def lab(tmp_path):
    """Episodes of a table by a map, and what the import said."""

    def run(table: str, columns: str):
        (tmp_path / "lab.csv").write_text(table)
        (tmp_path / "map.yaml").write_text(columns)
        said: list[str] = []
        trial = import_csv(
            tmp_path / "lab.csv", tmp_path / "map.yaml", tmp_path / "out", warn=said.append
        )
        assert not verify_trial(trial.path).problems
        with EpisodeStore(trial.path, durable=False) as store:
            return list(store.episodes()), said

    return run


RATES = """columns: {policy: p, rate: r, trials: n}
constants: {task: push, side: real, robot: arm}
"""
SUMS = "constants: {task: push, side: real, robot: arm}\n"


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("p,k,n\na,7,10\nb,0,3\n", "{policy: p, successes: k, trials: n}"),
        ("p,k\na,7/10\nb,0 / 3\n", "{policy: p, successes: k}"),
        ("p,k,n\na,70,10\nb,0,3\n", "{policy: p, rate: {column: k, unit: '%'}, trials: n}"),
        ("p,k,n\na,0.70,10\nb,0,3.0\n", "{policy: p, rate: k, trials: n}"),
        ("p,k,n\na,7,10\nb,0,3\n", "{policy: p, rate: {column: k, scale: 0.1}, trials: n}"),
        (
            "p,k,n\na,0.7,1\nb,0,0.3\n",
            "{policy: p, successes: {column: k, scale: 10}, trials: {column: n, scale: 10}}",
        ),
        (
            "p,k,n\na,7/10,1\nb,0/3,0.3\n",
            "{policy: p, successes: k, trials: {column: n, scale: 10}}",
        ),
    ],
)
def test_a_line_of_successes_and_trials_is_that_many_episodes(lab, table, columns):
    rows, _ = lab(table, f"columns: {columns}\n{SUMS}")
    assert [(row.policy, row.success) for row in rows] == [
        *[("a", True)] * 7, *[("a", False)] * 3, *[("b", False)] * 3,
    ]  # fmt: skip
    assert len({row.episode_id for row in rows}) == 13
    assert {row.duration_s for row in rows} == {row.seed for row in rows} == {None}
    assert "their order is not known" in str(rows[0].end_detail)


@pytest.mark.parametrize(
    ("rate", "n", "k"), [("0.67", 3, 2), ("0.6666666666666666", 3, 2), ("66.6%", 3, 2), ("1", 5, 5)]
)
def test_a_rounded_rate_is_the_one_number_of_successes_it_can_be(lab, rate, n, k):
    unit = ", unit: '%'" if "%" in rate else ""
    columns = f"columns: {{policy: p, rate: {{column: r{unit}}}, trials: n}}\n{SUMS}"
    rows, _ = lab(f"p,r,n\na,{rate},{n}\n", columns)
    assert sum(row.success for row in rows) == k


def test_a_rate_of_one_decimal_is_what_a_program_writes(lab):
    rows, _ = lab("p,r,n\na,0.9,20\nb,0.5,50\n", RATES)
    assert sum(row.success for row in rows) == 18 + 25


@pytest.mark.parametrize(
    ("table", "columns", "problem"),
    [
        ("k,n\n0.67,150\n", "{rate: k, trials: n}", "several numbers of successes; give successes"),
        ("k,n\n0.67,1000\n", "{rate: k, trials: n}", "several numbers.*with all its decimals"),
        ("k,n\n67%,1000\n", "{rate: {column: k, unit: '%'}, trials: n}", "several numbers"),
        ("k,n\n67,1000\n", "{rate: {column: k, scale: 0.01}, trials: n}", "several numbers"),
        ("k\n7/10\n", "{successes: {column: k, scale: 10}}", "says both numbers"),
        ("k,n\n0.33,20\n", "{rate: k, trials: n}", "no whole number of successes"),
        ("k,n\n5,3\n", "{successes: k, trials: n}", "column 'k [+] n': 5 of 3 trials cannot"),
        ("k,n\n5,\n", "{successes: k, trials: n}", "'5' is of how many episodes?"),
        ("k,n\n5/8,9\n", "{successes: k, trials: n}", "'5/8' is of other trials than '9'"),
        ("k,n\n1,1e12\n", "{successes: k, trials: n}", "stands for 0 to 1000000 episodes"),
        ("k,n\n1,2.5\n", "{successes: k, trials: n}", "'2.5' is not a whole number"),
    ],
)
def test_counts_that_cannot_be_are_refused(lab, table, columns, problem):
    constants = SUMS.replace("{task", "{policy: p, task")
    with pytest.raises(InputError, match=rf"lab\.csv: line 2, .*{problem}"):
        lab(table, f"columns: {columns}\n{constants}")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ("{policy: p, rate: r}", "rate: needs trials"),
        ("{policy: p, success: s, trials: n}", "trials: needs successes or rate"),
        ("{policy: p, successes: s, trials: n, quality: q}", "successes: .* leave quality out"),
        ("{policy: p, successes: {column: s, unit: s}}", "successes has no unit"),
        ("{policy: p, success: {column: s, columns: [a]}}", "column: is given beside columns"),
        ("{policy: p, seed: {column: s, unit: names}, success: s}", "did you mean 'name'"),
    ],
)
def test_a_map_of_counts_says_all_it_needs(lab, columns, problem):
    with pytest.raises(InputError, match=rf"map\.yaml: {problem}|map\.yaml: columns.*{problem}"):
        lab("p\na\n", f"columns: {columns}\n{SUMS}")


def test_the_decimals_of_a_rate_are_those_of_its_column(lab):
    rows, _ = lab("p,r,n\na,0.9,50\nb,0.85,20\nc,1,100\n", RATES)
    assert [sum(row.success for row in rows if row.policy == name) for name in "abc"] == [
        45, 17, 100,
    ]  # fmt: skip


def test_a_name_that_no_plan_can_hold_is_told_where_the_map_says_it(lab):
    with pytest.raises(InputError, match="as a key of policies"):
        lab("i,a\n1,1\n", f"columns: {{seed: i}}\n{SUMS}policies: {{a b: a}}\n")


def test_starts_with_whole_numbers_for_names_are_one_as_floats(lab):
    table = "cup,pose,p,ok\nmug,1,a,1\nmug,1.0,b,0\n2,x,a,1\n2.0,x,b,1\n"
    own = "{policy: p, seed: {columns: [cup, pose], unit: name}, success: ok}"
    rows, _ = lab(table, f"columns: {own}\n{SUMS}")
    assert len({row.seed for row in rows}) == 2


def test_the_name_of_a_start_is_not_scaled(lab):
    own = "{policy: p, seed: {column: pose, scale: 2, unit: name}, success: ok}"
    with pytest.raises(InputError, match=r"seed\.scale: a name is not scaled"):
        lab("pose,p,ok\n1,a,1\n", f"columns: {own}\n{SUMS}")


@pytest.mark.parametrize("ours", ["success", "quality"])
def test_a_reward_is_no_outcome(lab, ours):
    with pytest.raises(InputError, match=r"line 2.*'-1'.*episode_return") as caught:
        lab("p,r\na,-1\n", f"columns: {{policy: p, {ours}: r}}\n{SUMS}success_quality: 0.5\n")
    assert "'%'" not in str(caught.value)


def test_a_column_for_each_policy_is_a_row_for_each(lab):
    table = "start,pi0,act,act_s\n1,yes,no,4\n2,no,,\n"
    own = "{pi0: pi0, act: {success: act, duration_s: act_s}}"
    columns = f"columns: {{seed: start}}\n{SUMS}policies: {own}\n"
    rows, said = lab(table, columns)
    assert [(row.policy, row.seed, row.success, row.duration_s) for row in rows] == [
        ("pi0", 1, True, None), ("act", 1, False, 4.0),
        ("pi0", 2, False, None), ("act", 2, None, None),
    ]  # fmt: skip
    assert "1 episode without a score" in said[0]


def test_a_table_of_rates_with_a_column_for_each_policy(lab):
    table = "task,pi0,act\ncup,90%,2/4\nlid,,0/4\n"
    columns = """columns: {task: task, episode_id: task}
constants: {side: real, robot: arm}
policies: {pi0: {rate: {column: pi0, unit: '%'}, trials: n}, act: {successes: act}}
"""
    rows, said = lab(table.replace("act\n", "act,n\n").replace("4\n", "4,10\n"), columns)
    got = {name: [r.success for r in rows if r.policy == name] for name in ("pi0", "act")}
    assert (sum(got["pi0"]), len(got["pi0"])) == (9, 10)
    assert (sum(got["act"]), len(got["act"])) == (2, 8)
    assert rows[0].episode_id == "cup-pi0-1"
    assert said == [said[0]]
    assert "1 cell without a number of successes left out" in said[0]


def test_what_is_wrong_with_a_policys_column_is_named(lab):
    columns = f"columns: {{seed: i}}\n{SUMS}policies: {{pi0: {{success: a}}, act: {{succes: b}}}}\n"
    with pytest.raises(InputError, match=r"policies\.act.*did you mean 'success'"):
        lab("i,a,b\n1,1,0\n", columns)
    with pytest.raises(InputError, match=r"'policy' is in columns and in policies; choose one"):
        lab("i,a\n1,1\n", f"columns: {{policy: i}}\n{SUMS}policies: {{pi0: a}}\n")


def test_a_start_with_a_name_has_the_same_seed_everywhere(lab):
    columns = f"columns: {{policy: p, seed: {{column: at, unit: name}}, success: s}}\n{SUMS}"
    rows, _ = lab("p,at,s\na,pos_A3,1\nb,pos_A3,0\na,pos_B1,1\nb,,0\n", columns)
    assert [row.seed for row in rows[:2]] == [start_of("pos_A3").seed] * 2
    assert rows[0].seed == 4_407_701_425_396_418
    assert rows[0].initial_state == {"start": "pos_A3"}
    assert rows[2].seed != rows[0].seed < 2**53
    assert rows[3].seed is None


def test_a_start_with_a_name_that_the_map_does_not_expect_is_refused_with_the_remedy(lab):
    columns = f"columns: {{policy: p, seed: at, success: s}}\n{SUMS}"
    with pytest.raises(InputError, match="'pos_A3' is not a number; give unit: name if starts"):
        lab("p,at,s\na,pos_A3,1\n", columns)


def test_several_columns_are_one_key(lab):
    table = "p,cup,pose,date,time,s\na,red,1,05.03.2026,14:10,1\na,red 1,,05.03.2026,14:20,0\n"
    columns = f"""columns:
  policy: p
  seed: {{columns: [cup, pose], unit: name}}
  pair_id: {{columns: [cup, pose]}}
  start_ns: {{columns: [date, time], formats: ['%d.%m.%Y %H:%M']}}
  success: s
zone: Europe/Berlin
{SUMS}"""
    rows, _ = lab(table, columns)
    assert [row.pair_id for row in rows] == ["red / 1", "red 1"]
    assert rows[0].seed != rows[1].seed
    assert rows[1].start_ns - rows[0].start_ns == 600 * 10**9


def test_a_time_of_two_columns_that_no_format_reads_names_both(lab):
    columns = f"""columns:
  policy: p
  start_ns: {{columns: [date, time], formats: ['%d.%m.%Y %H:%M']}}
  success: s
{SUMS}"""
    with pytest.raises(InputError, match=r"line 2, column 'date \+ time': '3/5/2026 2' is none of"):
        lab("p,date,time,s\na,3/5/2026,2,1\n", columns)


def test_a_pair_id_that_policies_share_is_told_to_be_a_seed(lab):
    columns = f"columns: {{policy: p, pair_id: at, success: s}}\n{SUMS}"
    _, said = lab("p,at,s\na,pos_A3,1\nb,pos_A3,0\na,pos_B1,1\n", columns)
    assert len(said) == 1
    assert "pair_id 'pos_A3'" in said[0]
    assert "map seed with unit: name" in said[0]


def test_lines_of_no_trials_are_told_and_not_taken_for_no_lines(lab):
    columns = f"columns: {{policy: p, successes: k, trials: n}}\n{SUMS}"
    with pytest.raises(InputError, match=r"lab\.csv: holds no episodes: 1 cell of 0 trials"):
        lab("p,k,n\na,0,0\n", columns)
    with pytest.raises(InputError, match=r"lab\.csv: holds no episodes: only a header line"):
        lab("p,k,n\n", columns)
    episodes, said = lab("p,k,n\na,0,0\nb,1,2\n", columns)
    assert len(episodes) == 2
    assert any("1 cell of 0 trials left out" in one for one in said)
