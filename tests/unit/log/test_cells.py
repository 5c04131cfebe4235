"""What a cell says is the same in every table: numbers, truths, shares, whole numbers, times."""

import time
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.errors import InputError
from robo_eval.log.cells import CellError, Reading, iso_ns, number_of
from robo_eval.log.csv_records import records
from robo_eval.log.evidence_read import read_evidence

PLAIN = Reading(form="column map")
GERMAN = Reading(decimal=",", form="column map")
GROUPED = Reading(decimal=",", thousands=".", form="column map")


def ns(text: str) -> int:
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp()) * 10**9


@pytest.mark.parametrize(
    ("reading", "text", "value"),
    [
        (PLAIN, "1234.5", "1234.5"),
        (GERMAN, "0,5", "0.5"),
        (GROUPED, "1.234,5", "1234.5"),
        (GROUPED, "1234,5", "1234.5"),
        (GROUPED, "-1.234.567", "-1234567"),
        (Reading(thousands=","), "1,234.5", "1234.5"),
        (Reading(decimal=",", thousands=" "), "1\u202f234,5", "1234.5"),
        (Reading(thousands="'"), "1'234", "1234"),
    ],
)
def test_a_number_is_read_with_the_signs_of_the_table(reading, text, value):
    assert reading.number(text) == number_of(value)


@pytest.mark.parametrize(
    ("reading", "text", "remedy"),
    [
        (PLAIN, "1,234.5", "say thousands: ',' in the column map"),
        (PLAIN, "0,5", "say decimal: ',' in the column map"),
        (PLAIN, "1,234", "say thousands: ',' or decimal: ',' in the column map"),
        (GERMAN, "1.234", "say thousands: '.' or decimal: '.' in the column map"),
        (GERMAN, "1.234,5", "say thousands: '.' in the column map"),
        (GROUPED, "1.23,5", "is not a number with the decimal sign ','$"),
        (GROUPED, "12.3456", "is not a number"),
        (Reading(), "1,234.5", "write it like 1234.5$"),
    ],
)
def test_a_number_with_other_signs_is_refused_with_what_would_read_it(reading, text, remedy):
    with pytest.raises(CellError, match=remedy):
        reading.number(text)


@given(st.integers(-(10**12), 10**12), st.sampled_from([",", ".", " ", "'"]))
def test_thousands_change_no_number(number, sign):
    decimal = "," if sign == "." else "."
    text = f"{number:,}".replace(",", sign)
    assert Reading(decimal=decimal, thousands=sign).whole(text) == number


@pytest.mark.parametrize("text", ["TRUE", "True", "1.0", "1", "yes", "1."])
def test_a_truth_has_many_spellings(text):
    assert PLAIN.truth(text) is True
    assert GERMAN.truth("0,0") is False


@pytest.mark.parametrize("text", ["WAHR", "np.True_", "tensor(True)", "2", "0.5", "1,0"])
def test_what_is_no_truth_here_asks_for_values(text):
    with pytest.raises(CellError, match=r"neither true nor false; say which in `values`"):
        PLAIN.truth(text)


def test_a_word_is_found_by_its_whole_number():
    assert PLAIN.word("1.0", {"1": "true"}) == PLAIN.word("1", {"1.0": "true"}) == "true"
    assert PLAIN.word("1.10", {"1.1": "older"}) is None
    assert PLAIN.word("1,000", {"1": "true"}) is None


def test_a_share_is_whole_where_only_a_sum_was_rounded():
    assert PLAIN.share(repr(sum([1 / 200] * 200))) == 1.0 < sum([1 / 200] * 200)
    assert PLAIN.share("100.00000000000001", "%") == 1.0
    assert PLAIN.share("-1e-17") == 0.0
    with pytest.raises(CellError, match="outside"):
        PLAIN.share("1.00001")


BERLIN = Reading(zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("text", "formats", "expected"),
    [
        ("01.12.2025 10:30", ["%d.%m.%Y %H:%M"], "2025-12-01T10:30:00+01:00"),
        ("01.07.2025 10:30", ["%d.%m.%Y %H:%M"], "2025-07-01T10:30:00+02:00"),
        ("12/01/2025 10:30 PM", ["%m/%d/%Y", "%m/%d/%Y %I:%M %p"], "2025-12-01T22:30:00+01:00"),
        ("12/01/2025", ["%m/%d/%Y"], "2025-12-01T00:00:00+01:00"),
        ("2025-12-01 10:30 -0500", ["%Y-%m-%d %H:%M %z"], "2025-12-01T10:30:00-05:00"),
    ],
)
def test_a_start_is_read_by_its_format_and_zone(text, formats, expected):
    assert BERLIN.instant(text, formats=formats) == ns(expected)


def test_a_start_without_formats_is_iso_or_what_a_spreadsheet_keeps():
    assert BERLIN.instant("2025-12-01 10:30:00", "iso8601") == ns("2025-12-01T10:30:00+01:00")
    assert BERLIN.instant("2025-12-01 10:30:00-05:00", "iso8601") == ns("2025-12-01T15:30:00+00:00")
    assert Reading().instant("45992.4375", "excel") == ns("2025-12-01T10:30:00+00:00")
    assert GERMAN.instant("45992,4381944444", "excel") == ns("2025-12-01T10:31:00+00:00")
    with pytest.raises(CellError, match="not the number a spreadsheet keeps"):
        Reading().instant("1764585000", "excel")


@pytest.mark.parametrize("text", ["2025-10-26T02:30", "2025-03-30T02:30"])
def test_a_start_that_clocks_showed_twice_or_never_asks_for_its_offset(text):
    with pytest.raises(CellError, match=r"twice or never, being set; write its offset"):
        BERLIN.instant(text, "iso8601")


@pytest.mark.parametrize(
    ("text", "form", "begin", "end"),
    [
        ("Feb-24", "%b-%y", "2024-02-01", "2024-03-01"),
        ("JAN 2024", "%b %Y", "2024-01-01", "2024-02-01"),
        ("2024-Q4", "%Y-Q%q", "2024-10-01", "2025-01-01"),
        ("NOV-2025 17:06", "%b-%Y %H:%M", "2025-11-01", "2025-12-01"),
        ("2024", "%Y", "2024-01-01", "2025-01-01"),
        ("31.12.2024", "%d.%m.%Y", "2024-12-31", "2025-01-01"),
    ],
)
def test_a_period_lasts_as_long_as_its_format_says(text, form, begin, end):
    midnights = (iso_ns(day, "Europe/Berlin") for day in (begin, end))
    assert BERLIN.span(text, [form]) == tuple(midnights)


def test_a_time_that_clocks_showed_twice_is_a_span():
    begin, end = BERLIN.span("26.10.2025 02:30", ["%d.%m.%Y %H:%M"])
    assert begin == ns("2025-10-26T02:30:00+02:00")
    assert end == ns("2025-10-26T02:30:00+01:00") + 1
    with pytest.raises(CellError, match="skipped"):
        BERLIN.span("30.03.2025 02:30", ["%d.%m.%Y %H:%M"])
    with pytest.raises(CellError, match=r"is none of %d\.%m"):
        BERLIN.span("yesterday", ["%d.%m.%Y"])
    with pytest.raises(CellError, match=r"'Januar 2026' is none of %B %Y; .* English, such as"):
        Reading().instant("Januar 2026", formats=("%B %Y",))
    with pytest.raises(CellError, match="is none of %Y Q%q"):
        BERLIN.span("2024 Q5", ["%Y Q%q"])


def test_a_date_keeps_all_its_digits():
    assert iso_ns("2026-03-01T10:30:00.123456789Z", None) % 10**9 == 123_456_789


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [
        ("ratings", "episode_id,rater,success\ne1,a,1.0\n", lambda one: one.success is True),
        ("tools", "category,episodes,successes\na,5.0,1e0\n", lambda one: one.episodes == 5),
        (
            "experts",
            "family,quality,se,n,source\na,1.0000000000000002,0,4,x\n",
            lambda one: one.quality == 1.0,
        ),
    ],
)
def test_evidence_is_read_like_episodes(tmp_path, name, text, read):
    (tmp_path / f"{name}.csv").write_text(text)
    (note,) = getattr(read_evidence(tmp_path), name)
    assert read(note)


@pytest.mark.parametrize("cell", ["1,234", "1_000", "1.234,5"])
def test_evidence_refuses_what_episodes_refuse(tmp_path, cell):
    (tmp_path / "repairs.csv").write_text(f'hours\n"{cell}"\n')
    with pytest.raises(InputError, match=r"repairs\.csv: line 2, column 'hours': .* not a number"):
        read_evidence(tmp_path)


def test_remarks_before_a_header_are_no_lines(tmp_path):
    text = 'sep=;\n# hours, as the workshop has them\n"# and more";\nhours;description\n2;a\n'
    (tmp_path / "repairs.csv").write_text(text)
    (repair,) = read_evidence(tmp_path).repairs
    assert (repair.hours, repair.line) == (2.0, 5)


def test_a_remark_below_the_header_is_refused_with_what_is_true_there(tmp_path):
    (tmp_path / "repairs.csv").write_text("hours,description\n2,a\n# end\n")
    with pytest.raises(InputError, match=r"line 3: has 1 cells.*; remarks stand above the header"):
        read_evidence(tmp_path)


def test_a_long_cell_is_read(tmp_path):
    found = records(tmp_path / "t.csv", f"a,b\n1,{'x' * 200_000}\n".encode())
    assert [(line, len(cells[1])) for line, cells in found] == [(2, 200_000)]


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"PK\x03\x04\x14\x00\x06\x00\xc7", "is a workbook .*; save its sheet as CSV"),
        (b'{"per_task": []}', "is JSON; "),
        (b"\xef\xbb\xbf [1]", "is JSON; "),
        (b"<html><table></table></html>", "is HTML or XML; "),
        (b"PAR1\x15\x04", "is Parquet; "),
    ],
)
def test_what_is_no_table_is_named(tmp_path, head, what):
    with pytest.raises(InputError, match=rf"t\.csv: {what}"):
        records(tmp_path / "t.csv", head)


@pytest.mark.parametrize("machine", ["America/New_York", "Europe/Berlin"])
@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("2025-12-01 10:30:00 UTC", "%Y-%m-%d %H:%M:%S %Z"),
        ("2025-12-01 10:30:00 gmt", "%Y-%m-%d %H:%M:%S %Z"),
        ("2025-12-01T10:30:00Z", "%Y-%m-%dT%H:%M:%S%Z"),
        ("Mon Dec 1 10:30:00 UTC 2025", "%a %b %d %H:%M:%S %Z %Y"),
        ("2025-12-01 11:30 GMT+0100", "%Y-%m-%d %H:%M %Z%z"),
    ],
)
def test_a_zone_by_name_is_utc_wherever_a_table_is_read(monkeypatch, machine, text, form):
    monkeypatch.setenv("TZ", machine)
    time.tzset()
    try:
        assert BERLIN.instant(text, formats=[form]) == ns("2025-12-01T10:30:00+00:00")
        for zone in ("CET", "EST", "PDT", "XYZ"):
            with pytest.raises(
                CellError, match="write the name itself into the format, and set zo"
            ):
                BERLIN.instant(f"2025-12-01 10:30 {zone}", formats=["%Y-%m-%d %H:%M %Z"])
            named = BERLIN.instant(f"2025-12-01 11:30 {zone}", formats=[f"%Y-%m-%d %H:%M {zone}"])
            assert named == ns("2025-12-01T10:30:00+00:00")
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("mark", ["'", "\u2019", "\u02bc"])
@pytest.mark.parametrize("text", ["2'000", "2\u2019000", "2\u02bc000", "2\u00b4000"])
def test_apostrophes_between_thousands_are_one_sign(mark, text):
    assert Reading(thousands=mark).whole(text) == 2000
    with pytest.raises(CellError, match="say thousands"):
        Reading(form="map").number(text)


def test_a_number_of_a_spreadsheet_in_place_of_a_date_names_its_unit():
    for text in ("45992", "45992.4375", "45992,4375"):
        for how in ({"unit": "iso8601"}, {"formats": ["%d.%m.%Y"]}):
            with pytest.raises(CellError, match="give unit: excel"):
                BERLIN.instant(text, **how)
    day = BERLIN.span("45992", (), "excel")
    assert day == (ns("2025-12-01T00:00:00+01:00"), ns("2025-12-02T00:00:00+01:00"))
    assert BERLIN.span("45992.4375", (), "excel") == (ns("2025-12-01T10:30:00+01:00"), None)
