"""Tables of incidents with columns of their own, such as public crash tables, read by a map."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

import pytest

from robo_eval.core.errors import InputError
from robo_eval_incidents.incident_map import IncidentMap
from robo_eval_incidents.lists import Filter, tally
from robo_eval_incidents.tables_read import import_reports, read_csv
from robo_eval_incidents.text import span_of

MAP = """
columns:
  source_id: Report ID
  time:
    columns: [Incident Date, "Incident Time (24:00)"]
    formats: ["%d-%b-%Y %H:%M", "%d-%b-%Y", "%b-%Y %H:%M", "%b-%Y"]
  robot: {columns: [Make, Model]}
  severity:
    column: Highest Injury Severity Alleged
    values: {No Injuries Reported: near_miss, "Property Damage. No Injured Reported": minor,
             Minor: minor, Serious: major, Fatality: critical}
    otherwise: minor
  category: {column: Crash With, values: {Passenger Car: collision, Pedestrian: person_contact}}
  engagement: {column: Automation System Engaged?, values: {ADS: autonomous, ADAS: assisted}}
  description: Narrative
  quantities.speed: {column: SV Precrash Speed (MPH), unit: mi/h}
  answers.fatality:
    {column: Highest Injury Severity Alleged, values: {Fatality: yes}, otherwise: no}
constants: {side: real}
version: Report Version
zone: America/New_York
missing: [Unknown, "[REDACTED]"]
"""
HEADER = (
    "Report ID", "Report Version", "Make", "Model", "Incident Date", "Incident Time (24:00)",
    "Highest Injury Severity Alleged", "Crash With", "Automation System Engaged?",
    "SV Precrash Speed (MPH)", "City", "Narrative",
)  # fmt: skip
LINE = {
    "Report ID": "1-2", "Report Version": "1", "Make": "Jaguar", "Model": "I-Pace",
    "Incident Date": "NOV-2025", "Incident Time (24:00)": "17:06",
    "Highest Injury Severity Alleged": "No Injuries Reported", "Crash With": "Passenger Car",
    "Automation System Engaged?": "ADS", "SV Precrash Speed (MPH)": "0", "City": "Köln",
    "Narrative": "The other car\nrolled into it, at \"low\" speed.",
}  # fmt: skip


@pytest.fixture
def own_map(tmp_path) -> IncidentMap:
    path = tmp_path / "map.yaml"
    path.write_text(MAP)
    return IncidentMap.read(path)


@pytest.fixture
def table(tmp_path) -> Any:
    def write(*changed: dict[str, str]) -> Path:
        path = tmp_path / "crashes.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, HEADER)
            writer.writeheader()
            writer.writerows(LINE | one for one in changed)
        return path

    return write


# Reading ---------------------------------------------------------------------------------------


def test_a_line_of_their_columns_becomes_a_report(table, own_map):
    (one,) = read_csv(table({}), columns=own_map)
    report = one.report
    assert (report.source_id, report.robot, report.side) == ("1-2", "Jaguar I-Pace", "real")
    assert (report.severity, report.category, report.engagement) == (
        "near_miss", "collision", "autonomous",
    )  # fmt: skip
    assert report.description == 'The other car\nrolled into it, at "low" speed.'
    assert [str(one) for one in report.quantities] == ["speed 0 mi/h"]
    assert report.answers == {"fatality": "no"}
    # A month and the hour of an unknown day: no more is known than the month.
    assert (report.happened_ns, report.until_ns) == span_of("2025-11 America/New_York")


@pytest.mark.parametrize(
    ("day", "clock", "time"),
    [
        ("7-NOV-2025", "17:06", "2025-11-07T17:06 America/New_York"),
        ("7-NOV-2025", "Unknown", "2025-11-07 America/New_York"),
        ("NOV-2025", "", "2025-11 America/New_York"),
        ("2-NOV-2025", "01:30", "2025-11-02T01:30 America/New_York"),
        ("[REDACTED]", "Unknown", "unknown"),
    ],
)
def test_times_are_read_as_far_as_they_are_known(table, own_map, day, clock, time):
    path = table({"Incident Date": day, "Incident Time (24:00)": clock})
    (one,) = read_csv(path, columns=own_map)
    assert (one.report.happened_ns, one.report.until_ns) == span_of(time)


def test_what_is_missing_says_nothing(table, own_map):
    gone = {"SV Precrash Speed (MPH)": "Unknown", "Crash With": "", "Model": "[REDACTED]"}
    (one,) = read_csv(table(gone), columns=own_map)
    assert (one.report.quantities, one.report.category, one.report.robot) == ((), "other", "Jaguar")


def test_a_table_of_thousands_of_lines_goes_in_once(log, table, own_map):
    rng = random.Random(0)
    severities = ["No Injuries Reported", "Minor", "Serious", "Fatality", "Moderate"]
    lines, newest = [], {}
    for number in range(1_500):
        for version in range(1, rng.choice([2, 2, 3])):
            severity = rng.choice(severities)
            newest[number] = severity
            lines.append({
                "Report ID": str(number), "Report Version": str(version),
                "Highest Injury Severity Alleged": severity,
                "Incident Date": rng.choice(["NOV-2025", "DEC-2025", "3-OCT-2025"]),
                "Narrative": "=1+1\n" * rng.randrange(1, 4) + "end",
            })  # fmt: skip
    rng.shuffle(lines)
    path = table(*lines)
    assert len(import_reports(log, path, by="Operator A", columns=own_map).added) == 1_500
    assert import_reports(log, path, by="Operator A", columns=own_map).known == 1_500
    counts = tally(log, Filter())
    for severity, theirs in {
        "near_miss": ["No Injuries Reported"],
        "critical": ["Fatality"],
    }.items():
        found = sum(count for (_, own, _), count in counts.items() if own == severity)
        assert found == sum(one in theirs for one in newest.values())


def test_a_newer_version_is_offered_as_a_correction(log, table, own_map):
    import_reports(log, table({}), by="Operator A", columns=own_map)
    newer = {"Report Version": "2", "Narrative": "Both cars moved."}
    path = table({}, newer)
    with pytest.raises(InputError, match="--as-corrections corrects that one"):
        import_reports(log, path, by="Operator A", columns=own_map)
    done = import_reports(log, path, by="Operator A", columns=own_map, as_corrections=True)
    assert len(done.corrected) == 1
    assert log.incident(done.corrected[0]).report.description == "Both cars moved."


# What cannot be taken --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"Crash With": "Animal"}, r"column Crash With \(category\): 'Animal' is not among"),
        ({"Incident Date": "11/2025"}, r"line 4, column Incident Date \+ .* is none of %d-%b-%Y"),
        ({"SV Precrash Speed (MPH)": "fast"}, r"line 4, column SV Precrash Speed \(MPH\) \(quant"),
        ({"Narrative": ""}, r"line 4, column Narrative \(description\): is missing"),
        ({"Make": "", "Model": ""}, r"line 4, column Make \+ Model \(robot\): is missing"),
        ({"Report Version": "b"}, "line 4, column Report Version: 'b' is not the number"),
        ({"Report ID": "1-2"}, "source id '1-2' appears twice"),
        ({"Incident Date": "JAN-2200"}, r"line 4, column Incident Date .*still to come"),
    ],
)  # fmt: skip
def test_one_bad_line_keeps_all_of_them_out_and_is_named_by_their_column(
    log, table, own_map, changed, problem
):
    path = table({}, {"Report ID": "3"} | changed)
    with pytest.raises(InputError, match=problem):
        import_reports(log, path, by="Operator A", columns=own_map)
    assert log.heads() == {}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("columns: {}", "says nothing about 'time'"),
        (MAP.replace("source_id: Report ID", ""), "says nothing about 'source_id'"),
        (MAP.replace("severity:", "badness:"), "unknown column 'badness'"),
        (MAP.replace("near_miss", "harmless"), "columns.severity.values: unknown word 'harmless'"),
        (MAP.replace("answers.fatality", "answers.death"), "unknown question 'death'"),
        (MAP.replace("quantities.speed", "quantities"), "quantities.<name>"),
        (MAP.replace("{side: real}", "{side: real, robot: x}"), "in columns and in constants"),
        (MAP.replace("{side: real}", "{side: truck}"), "constants.side: unknown word 'truck'"),
        (MAP.replace("America/New_York", "Mars/Base"), "zone: 'Mars/Base' is no zone"),
        (
            MAP.replace("Narrative", "{column: N, unit: m}"),
            "unit: description has none",
        ),
        (MAP.replace("Narrative", "{values: {a: b}}"), "names no column"),
        (MAP.replace("version:", "versions:"), "unknown key 'versions'; did you mean 'version'"),
    ],
)
def test_a_map_that_is_none_is_refused_with_its_place(tmp_path, text, problem):
    path = tmp_path / "map.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=problem) as caught:
        IncidentMap.read(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_column_that_the_map_names_and_the_table_lacks_is_named(table, own_map):
    path = table({})
    path.write_text(path.read_text().replace("Crash With", "Crash with"))
    with pytest.raises(InputError, match="unknown column 'Crash With'; did you mean 'Crash with'"):
        read_csv(path, columns=own_map)


@pytest.mark.parametrize(
    ("form", "text", "time"),
    [
        ("%Y", "2025", "2025-01 UTC-05:00/2025-12 UTC-05:00"),
        ("%Y-%m-%d%z", "2025-11-07+01:00", "2025-11-06T23:00:00Z/2025-11-07T23:00:00Z"),
        ("%Y-%m%z", "2025-11Z", "2025-11"),
        ("%Y-%m-%d %H:%M%z", "2025-11-07 10:00+01:00", "2025-11-07T09:00:00Z"),
    ],
)
def test_a_time_is_no_more_than_its_format_says(table, tmp_path, form, text, time):
    path = tmp_path / "map.yaml"
    path.write_text(MAP.replace('["%d-%b-%Y %H:%M", "%d-%b-%Y", "%b-%Y %H:%M", "%b-%Y"]',
                                f'["{form}"]'))  # fmt: skip
    lines = table({"Incident Date": text, "Incident Time (24:00)": ""})
    (one,) = read_csv(lines, columns=IncidentMap.read(path))
    assert one.report.time == time


@pytest.mark.parametrize("text", ["25 km/h", "7; force=3", "about 7"])
def test_a_quantity_with_a_unit_of_its_own_is_refused(table, own_map, text):
    with pytest.raises(InputError, match=r"column SV Precrash Speed \(MPH\).*is not a number"):
        read_csv(table({"SV Precrash Speed (MPH)": text}), columns=own_map)


def test_decimals_may_stand_behind_a_comma(table, tmp_path):
    path = tmp_path / "map.yaml"
    path.write_text(f'{MAP}decimal: ","\n')
    (one,) = read_csv(table({"SV Precrash Speed (MPH)": "7,5"}), columns=IncidentMap.read(path))
    assert [each.value for each in one.report.quantities] == [7.5]


@pytest.mark.parametrize("versions", ["112", "121", "211"])
def test_only_the_newest_version_has_to_be_there_once(table, own_map, versions):
    lines = [{"Report Version": one, "Narrative": f"version {one}"} for one in versions]
    (one,) = read_csv(table(*lines), columns=own_map)
    assert one.report.description == "version 2"


def test_a_time_to_come_is_refused_before_any_line_is_corrected(log, table, own_map):
    import_reports(log, table({}), by="Operator C", columns=own_map)
    before = log.heads()
    changed = table(
        {"Report Version": "2", "Narrative": "other words"},
        {"Report ID": "9-9"},
        {"Report Version": "3", "Incident Date": "NOV-2199"},
    )
    with pytest.raises(InputError, match="is still to come"):
        import_reports(log, changed, by="C", columns=own_map, as_corrections=True)
    assert log.heads() == before


# Tables of authorities -------------------------------------------------------------------------

INITIATED = "INITIATED BY\n(AV System, Test Driver)"
STOPS = [
    '1/15/2024,CAR1,Test Driver,"It hesitated, at a cone."',
    "1.15.24,CAR2,Test driver,Lidar fault",
    "Feb-24,CAR1,AV System,Lost its place",
    "3/5/2024,CAR1,test driver ,Braked hard for nothing",
    "3/5/2024,CAR1,test driver ,Braked hard for nothing",
    "3/6/2024,CAR2,Remote Operator,Somebody near the lane",
]
STOPS_MAP = """
columns:
  time: {column: DATE, formats: ["%m/%d/%Y", "%m.%d.%y", "%b-%y"]}
  robot: VIN
  description: FACTS
  IDS
  engagement: {column: "INITIATED BY\\n(AV System, Test Driver)", values: {}, otherwise: autonomous}
constants: {side: real, severity: near_miss, category: other}
"""


@pytest.fixture
def stops(tmp_path):
    """A table of stops as an authority publishes it: no id, dates of three kinds, blank lines."""

    def make(ids: str = "", breaks: str = "\n") -> tuple[Path, IncidentMap]:
        path, own = tmp_path / "stops.csv", tmp_path / "stops.yaml"
        text = "\n".join([f'DATE,VIN,"{INITIATED}",FACTS,', *(f"{one}," for one in STOPS)])
        path.write_bytes((text + "\n,,,,\n" + 3000 * ",,,,\n").replace("\n", breaks).encode())
        own.write_text(STOPS_MAP.replace("IDS", ids))
        return path, IncidentMap.read(own)

    return make


@pytest.mark.parametrize("breaks", ["\n", "\r\n"])
@pytest.mark.parametrize(
    "ids", ["", "source_id: {columns: [VIN, DATE]}", "source_id: {columns: [VIN, DATE, FACTS]}"]
)
def test_two_equal_lines_of_a_table_without_ids_are_two_events(log, stops, ids, breaks):
    path, own = stops(ids, breaks)
    assert len(import_reports(log, path, by="Operator A", columns=own).added) == 6
    assert import_reports(log, path, by="Operator A", columns=own).known == 6
    times = [one.report.time for one in log.incidents()]
    assert times == [*["2024-01-15"] * 2, "2024-02", *["2024-03-05"] * 2, "2024-03-06"]


def test_ids_put_together_that_two_events_have_alike_are_refused_with_what_would_do(log, stops):
    path, own = stops("source_id: {columns: [VIN, INITIATED]}".replace("INITIATED", "VIN"))
    with pytest.raises(InputError, match=r"'CAR1 CAR1' appears twice.*leave ids out"):
        import_reports(log, path, by="Operator A", columns=own)
    assert log.heads() == {}


def short_map(tmp_path, time: str = "when", rest: str = "") -> IncidentMap:
    path = tmp_path / "short.yaml"
    path.write_text(
        f"columns: {{time: {time}, severity: s, description: d, quantities.speed: "
        f"{{column: v, unit: m/s}}, quantities.gap: g}}\n"
        f"constants: {{side: real, category: other, robot: r}}\ndelimiter: ';'\n{rest}"
    )
    return IncidentMap.read(path)


def short_table(tmp_path, *lines: str) -> Path:
    path = tmp_path / "short.csv"
    path.write_text("\n".join(["when;s;d;v;g", *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-03-05", "2026-03-05 Europe/Berlin"),
        ("2026-03", "2026-03 Europe/Berlin"),
        ("2026-Q1", "2026-01 UTC+01:00/2026-03 UTC+02:00"),
        ("2026-03-05 10:00", "2026-03-05T09:00:00Z"),
        ("2026-03-05T10:00:30.25", "2026-03-05T09:00:30.25Z"),
        ("2026-03-05 10:00 UTC", "2026-03-05T10:00:00Z"),
        ("2026-03-05T10:00:00+03:00", "2026-03-05T07:00:00Z"),
        ("2026-03-05/2026-03-06", "2026-03-04T23:00:00Z/2026-03-06T23:00:00Z"),
        ("unknown", "unknown"),
        ("", "unknown"),
    ],
)
def test_times_without_formats_are_of_the_zone_of_the_map(tmp_path, text, time):
    path = short_table(tmp_path, f"{text};minor;x;;")
    (one,) = read_csv(path, columns=short_map(tmp_path, rest="zone: Europe/Berlin\n"))
    assert (one.report.happened_ns, one.report.until_ns) == span_of(time)
    if text == "2026-03-05 10:00":
        with pytest.raises(InputError, match=r"line 2, column when .time.: .*names no zone"):
            read_csv(path, columns=short_map(tmp_path))


def test_dates_of_a_spreadsheet_are_read_by_their_unit_which_messages_name(tmp_path):
    own = short_map(tmp_path, "{column: when, unit: excel}", "decimal: ','\nzone: Europe/Berlin\n")
    path = short_table(tmp_path, "45992,4375;minor;x;;", "45992;minor;y;;")
    reports = [one.report for one in read_csv(path, columns=own)]
    assert [(one.happened_ns, one.until_ns) for one in reports] == [
        span_of("2025-12-01T09:30:00Z"), span_of("2025-12-01 Europe/Berlin"),
    ]  # fmt: skip
    for time in ("when", "{column: when, formats: ['%d.%m.%Y']}"):
        with pytest.raises(InputError, match=r"line 2, column when \(time\): .*give unit: excel"):
            read_csv(path, columns=short_map(tmp_path, time))
    with pytest.raises(InputError, match=r"columns\.time\.unit: time has only excel"):
        short_map(tmp_path, "{column: when, unit: s}")
    with pytest.raises(InputError, match=r"columns\.time\.formats: time has a unit; leave it out"):
        short_map(tmp_path, "{column: when, unit: excel, formats: ['%d']}")


@pytest.mark.parametrize(
    ("speed", "gap", "told"),
    [
        ("0,8 m/s", "12 cm", ["speed 0.8 m/s", "gap 12 cm"]),
        ("0,8m/s", "2\u2019000 mm", ["speed 0.8 m/s", "gap 2000 mm"]),
        ("0,8", "2'000", ["speed 0.8 m/s", "gap 2000"]),
    ],
)
def test_a_number_may_carry_the_unit_of_its_column(tmp_path, speed, gap, told):
    own = short_map(tmp_path, rest='decimal: ","\nthousands: "\u0027"\n')
    (one,) = read_csv(short_table(tmp_path, f"2026-03-05;minor;x;{speed};{gap}"), columns=own)
    assert [str(one) for one in one.report.quantities] == told
    for other in ("0,8 km/h", "0,8 s", "fast m/s"):
        with pytest.raises(InputError, match=r"line 2, column v .*is not a number"):
            read_csv(short_table(tmp_path, f"2026-03-05;minor;x;{other};"), columns=own)
