"""An empty file of evidence says what its columns hold, and is read as it is written."""

import pytest
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.core.errors import InputError
from robo_eval.log.evidence import NAMES
from robo_eval.log.evidence_new import new_evidence
from robo_eval.log.evidence_read import columns_of, read_evidence
from robo_eval.log.ratings import append_rating


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_is_read_as_it_is_written(tmp_path, name):
    path = new_evidence(name, tmp_path)
    assert path == tmp_path / f"{name}.csv"
    assert getattr(read_evidence(tmp_path), name) == ()
    *remarks, header = path.read_text().splitlines()
    assert all(line.startswith("# ") for line in remarks)
    assert len(remarks) == 2 + len(header.split(","))
    # A spreadsheet puts quotes around remarks, and commas behind them.
    text = "".join(f'"{line.replace(chr(34), chr(34) * 2)}",,\n' for line in remarks) + header
    path.write_text(text + "\n")
    assert getattr(read_evidence(tmp_path), name) == ()


def test_columns_are_explained_with_their_words_and_what_is_needed(tmp_path):
    text = new_evidence("incidents", tmp_path / "mine.csv").read_text()
    assert "# severity (needed): One of these. (near_miss, minor, major, critical)" in text
    assert "# time: When it happened, UTC; empty if not known. (a time such as 2026" in text
    assert "# As long as it has no lines it says that there was no incident" in text


@pytest.mark.parametrize("name", NAMES)
def test_no_column_is_needed_and_may_be_missing_as_well(tmp_path, name):
    lines = new_evidence(name, tmp_path).read_text().splitlines()
    needed = [line for line in lines if "(needed)" in line]
    assert not [line for line in needed if "if that is known" in line or "; empty if" in line]


def test_words_that_are_counted_are_all_there(tmp_path):
    (axis,) = (one for one in new_evidence("anchors", tmp_path).read_text().splitlines()
               if one.startswith("# axis"))  # fmt: skip
    assert "but E" in axis
    assert "(A, G, P, M, T, R, S, W, $)" in axis


def test_the_conductors_and_raters_add_to_it(tmp_path):
    new_evidence("ratings", tmp_path)
    append_rating(
        tmp_path, episode_id="e1", rater="a", success=True, side="real", blind=True,
        time="2026-03-01T09:30:00+00:00", milestones={},
    )  # fmt: skip
    (rating,) = read_evidence(tmp_path).ratings
    assert (rating.episode_id, rating.success) == ("e1", True)
    assert rating.line == 4 + sum(map(len, columns_of(type(rating))))


def test_a_file_that_is_there_stays_and_an_unknown_kind_is_named(tmp_path):
    (tmp_path / "repairs.csv").write_text("hours\n2\n")
    with pytest.raises(InputError, match=r"repairs\.csv: is there already"):
        new_evidence("repairs", tmp_path)
    assert (tmp_path / "repairs.csv").read_text() == "hours\n2\n"
    with pytest.raises(InputError, match="did you mean 'repairs'"):
        new_evidence("repair", tmp_path)


def test_the_verb_says_what_an_empty_file_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["evidence", "new", "faults"])
    assert done.exit_code == 0
    said = "as long as it has no lines it says"
    assert f"faults.csv: an empty file of faults; {said} that there were none" in done.stdout
    done = CliRunner().invoke(app, ["evidence", "new", "tools"])
    assert f"{said} nothing; what it is for counts as missing" in done.stdout
    done = CliRunner().invoke(app, ["evidence", "new", "incidents"])
    assert "delete it if nobody knows" in done.stdout
    told = " ".join(CliRunner().invoke(app, ["evidence", "new", "--help"]).stdout.split())
    assert ", ".join(NAMES) in told
