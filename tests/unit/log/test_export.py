"""Exports hold every row, and read back they are the table the log gives."""

import csv
import sqlite3
from contextlib import closing
from functools import partial

import pandas as pd
import pyarrow.parquet as pq
import pytest

from robo_eval.core.episode import COLUMNS, SCHEMA_VERSION
from robo_eval.core.errors import CheckFailedError, InputError, TrialDirectoryError
from robo_eval.core.kinds import EndReason
from robo_eval.log.export import export_episodes, read_episodes
from robo_eval.log.files import write_new
from robo_eval.log.store import EpisodeStore


@pytest.fixture
def mixed(trial, make_episode):
    make_episode = partial(make_episode, plan_digest=trial.plan_digest)
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append(
            [
                make_episode(0, operator='Jörg, "J."\n2nd line\r', episode_return=1 / 3),
                make_episode(
                    1, quality=None, success=None, end_reason=EndReason.LOST, level=None,
                    episode_return=None, seed=None, difficulty=None,
                ),
                make_episode(2, quality=0.1, success=False, end_reason=EndReason.TIMEOUT,
                             recovered=True, start_ns=2**62 + 1),
                make_episode(3, start_ns=None, duration_s=None, exposure_s=None, ticks=None),
            ]
        )  # fmt: skip
    return trial


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "ROWS.CSV"])
def test_an_export_reads_back_as_the_frame(mixed, tmp_path, name):
    assert export_episodes(mixed.path, tmp_path / name) == 4
    pd.testing.assert_frame_equal(read_episodes(tmp_path / name), mixed.frame())


def test_an_empty_trial_exports_its_columns(trial, tmp_path):
    for name in ("rows.csv", "rows.parquet"):
        assert export_episodes(trial.path, tmp_path / name) == 0
        assert tuple(read_episodes(tmp_path / name).columns) == COLUMNS


def test_other_tools_read_the_exports(mixed, tmp_path):
    export_episodes(mixed.path, tmp_path / "rows.csv")
    export_episodes(mixed.path, tmp_path / "rows.parquet")
    with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows[0]["operator"] == 'Jörg, "J."\n2nd line\r'
    assert [rows[3][name] for name in ("start_ns", "duration_s", "exposure_s", "ticks")] == [""] * 4
    assert (rows[0]["success"], rows[1]["success"], rows[1]["seed"]) == ("true", "", "")
    assert float(rows[0]["episode_return"]) == 1 / 3
    table = pq.read_table(tmp_path / "rows.parquet")
    types = {name: str(table.schema.field(name).type) for name in ("ticks", "quality", "success")}
    assert types == {"ticks": "int64", "quality": "double", "success": "bool"}
    assert table["start_ns"].to_pylist()[2] == 2**62 + 1
    assert table.schema.metadata[b"robo_eval.schema_version"] == str(SCHEMA_VERSION).encode()
    assert len(pd.read_csv(tmp_path / "rows.csv")) == 4


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_a_file_that_is_there_is_only_replaced_by_force(mixed, tmp_path, name):
    file = tmp_path / name
    file.write_text("precious")
    with pytest.raises(InputError, match=r"rows\.\w+: exists already; .* --force"):
        export_episodes(mixed.path, file)
    assert file.read_text() == "precious"
    assert export_episodes(mixed.path, file, force=True) == 4
    assert len(read_episodes(file)) == 4


def test_a_link_that_leads_nowhere_is_there(mixed, tmp_path):
    (tmp_path / "rows.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(InputError, match="exists already"):
        export_episodes(mixed.path, tmp_path / "rows.csv")


def test_an_export_that_fails_leaves_the_old_file(mixed, tmp_path, monkeypatch):
    file = tmp_path / "rows.csv"
    file.write_text("precious")

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("robo_eval.log.files.os.fsync", full)
    with pytest.raises(TrialDirectoryError, match=r"rows\.csv: cannot be written: No space"):
        export_episodes(mixed.path, file, force=True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir() if path.is_file()] == [
        ("rows.csv", "precious")
    ]


def test_the_command_needs_force_as_well(mixed, tmp_path):
    from typer.testing import CliRunner

    from robo_eval.cli.app import app

    file = tmp_path / "rows.csv"
    file.write_text("precious")
    command = ["export", str(mixed.path), "--out", str(file)]
    result = CliRunner().invoke(app, command)
    assert isinstance(result.exception, InputError)
    assert file.read_text() == "precious"
    result = CliRunner().invoke(app, [*command, "--force"])
    assert result.exit_code == 0
    assert len(read_episodes(file)) == 4


def test_the_command_says_that_a_log_does_not_verify(mixed, tmp_path):
    from typer.testing import CliRunner

    from robo_eval.cli.app import app

    with closing(sqlite3.connect(mixed.path / "episodes.db")) as raw:
        raw.execute("update episodes set operator = 'me' where sequence = 2")
        raw.commit()
    result = CliRunner().invoke(app, ["export", str(mixed.path), "-o", str(tmp_path / "rows.csv")])
    assert isinstance(result.exception, CheckFailedError)
    assert str(result.exception).startswith("the log does not verify: row 2 (e1) was changed; run")
    assert len(read_episodes(tmp_path / "rows.csv")) == 4


def test_a_wrong_word_in_a_table_names_the_valid_ones(mixed, tmp_path):
    export_episodes(mixed.path, tmp_path / "rows.csv")
    text = (tmp_path / "rows.csv").read_text().replace("timeout", "timout")
    (tmp_path / "rows.csv").write_text(text)
    expected = (
        r"column 'end_reason': unknown end_reason 'timout'; did you mean 'timeout'\? valid: [^`]*$"
    )
    with pytest.raises(InputError, match=expected):
        read_episodes(tmp_path / "rows.csv")


def test_an_unknown_ending_is_refused(mixed, tmp_path):
    with pytest.raises(InputError, match=r"rows\.xlsx: the name must end in \.parquet or \.csv"):
        export_episodes(mixed.path, tmp_path / "rows.xlsx")
    with pytest.raises(InputError, match="must end in"):
        read_episodes(tmp_path / "rows")


def test_an_unwritable_place_is_named(mixed, tmp_path):
    with pytest.raises(TrialDirectoryError, match=r"no/rows\.csv: cannot be written"):
        export_episodes(mixed.path, tmp_path / "no/rows.csv")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("quality", "qualty"), "column 'quality' is missing; .*did you mean 'quality'"),
        (("lost", "lots"), "row 2, column 'end_reason'"),
        (("e2,1", "e2,x"), "row 3, column 'attempt': 'x' is not a whole number"),
        (("true", "yes"), "row 1, column 'success': 'yes' is not true or false"),
    ],
)
def test_a_damaged_csv_is_named(mixed, tmp_path, change, reason):
    file = tmp_path / "rows.csv"
    export_episodes(mixed.path, file)
    # Not by text: that would turn line ends around.
    file.write_bytes(file.read_bytes().replace(*(text.encode() for text in change), 1))
    with pytest.raises(InputError, match=rf"rows\.csv: {reason}"):
        read_episodes(file)


def test_damaged_files_are_named(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match=r"a\.parquet: is not a Parquet file"):
        read_episodes(tmp_path / "a.parquet")
    with pytest.raises(TrialDirectoryError, match=r"b\.parquet: cannot be read"):
        read_episodes(tmp_path / "b.parquet")
    (tmp_path / "c.csv").write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match=r"c\.csv: line 1: is not UTF-8 text"):
        read_episodes(tmp_path / "c.csv")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("none/below/x.csv", "there is no folder .*none"), ("a_file/x.csv", "a_file is not a folder")],
)
def test_a_folder_above_that_is_none_is_named(tmp_path, name, reason):
    (tmp_path / "a_file").write_text("")
    with pytest.raises(TrialDirectoryError, match=rf"x\.csv: cannot be written: .*{reason}$"):
        write_new(tmp_path / name, "", "")
