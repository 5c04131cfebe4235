"""The incident log in a real browser, from a real server: reported, reviewed, exported, refused."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from mcap.writer import Writer
from rosbags.typesys import Stores, get_typestore

from robo_eval.web.sessions import COOKIE
from robo_eval_incidents import open_log, paper
from robo_eval_incidents.accounts import Accounts
from robo_eval_incidents.kinds import Exposure, Report, times_of
from robo_eval_incidents.log import make_log
from robo_eval_incidents.verify import verify_log
from robo_eval_incidents.web.deps import Sessions
from robo_eval_incidents.words import Severity, Via

pytestmark = pytest.mark.browser

PASSWORD = "four words in a row"
PEOPLE = {
    "Operator A": ["operator"],
    "R. Example": ["reviewer"],
    "S. Example": ["reviewer"],
    "Auditor": ["auditor"],
}
PATIENCE_MS = 120_000
"""For whatever a page does sooner on a machine that is not busy."""
NOW_NS = time.time_ns()
HOUR_NS = 3_600 * 10**9
# What a browser says of an answer that is no success; those are looked at themselves.
STATUS = re.compile(r"Failed to load resource: the server responded with a status of 4\d\d")


@dataclass
class Served:
    """A log and the address of its page."""

    url: str
    path: Path

    def count(self, kind: str) -> int:
        """How many records of a kind are in the log."""
        with closing(sqlite3.connect(self.path)) as database:
            query = "SELECT count(*) FROM records WHERE content LIKE ?"
            return int(database.execute(query, (f'%"kind":"{kind}"%',)).fetchone()[0])

    def token(self, name: str) -> str:
        """The token of a new session of somebody."""
        with open_log(self.path) as log:
            accounts = Accounts(log)
            user = accounts.find(name)
            assert user is not None
            return Sessions(log, accounts).begin(user)

    def end_sessions(self) -> None:
        """Let all sessions be older than a shift."""
        with closing(sqlite3.connect(self.path)) as database, database:
            database.execute("UPDATE sessions SET started_ns = 1")


def record_joints(path: Path) -> None:
    """Record two joints for 20 s around now, as ROS 2 does."""
    store = get_typestore(Stores.ROS2_HUMBLE)
    kind = "sensor_msgs/msg/JointState"
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start(profile="ros2", library="test")
        text, _ = store.generate_msgdef(kind, ros_version=2)
        schema = writer.register_schema(kind, "ros2msg", text.encode())
        channel = writer.register_channel("/arm_1/joint_states", "cdr", schema)
        for tick in range(-500, 500):
            time_ns = NOW_NS + tick * 20_000_000
            stamp = store.types["builtin_interfaces/msg/Time"](*divmod(time_ns, 10**9))
            header = store.types["std_msgs/msg/Header"](stamp, "base")
            angles = np.array([0.01 * (tick % 100), 0.5])
            message = store.types[kind](header, ["lift", "turn"], angles, angles, angles)
            data = bytes(store.serialize_cdr(message, kind))
            writer.add_message(channel, time_ns, data, time_ns)
        writer.finish()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server process, and a log with 60 incidents, hours, and an account of each role."""
    path = tmp_path_factory.mktemp("lab") / "incidents.db"
    make_log(path, station="cell-1")
    with open_log(path) as log:
        for name, roles in PEOPLE.items():
            Accounts(log).add(name, PASSWORD, roles, by="setup")
        for number in range(60):
            report = Report(
                happened_ns=NOW_NS - (number + 10) * HOUR_NS,
                robot="arm_2" if number % 3 else "arm_1",
                side="real",
                severity=Severity.MINOR if number % 5 == 0 else Severity.NEAR_MISS,
                category="protective_stop",
                description=f"Stop number {number} with a description of some length.",
                rule="protective_stop",
            )
            log.file(report, by="robo-eval", via=Via.RULE)
        (path.parent / "incidents").mkdir()
        record_joints(path.parent / "incidents" / "arm.mcap")
        report = Report(
            happened_ns=NOW_NS, robot="arm_1", side="real", severity="near_miss",
            category="force_limit", description="Recorded stop.",
            evidence=({"uri": "incidents/arm.mcap"},),
        )  # fmt: skip
        log.file(report, by="robo-eval", via=Via.RULE)
        hours = Exposure(
            robot="arm_1", side="real", mode="autonomous", start_ns=NOW_NS - 90 * HOUR_NS,
            seconds=80 * 3600.0,
        )  # fmt: skip
        log.file(hours, by="robo-eval", via=Via.RULE)
    command = [sys.executable, "-m", "robo_eval", "incidents", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--log", str(path)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", said)
        assert found, said
        yield Served(url=found[0], path=path)
    finally:
        process.terminate()
        process.wait(timeout=60)


@dataclass
class Person:
    """Somebody at a browser of their own."""

    page: Any
    context: Any
    url: str
    messages: list[str] = field(default_factory=list)

    def goto(self, path: str) -> Any:
        """Open a page of the log; returns the answer."""
        return self.page.goto(self.url + path)

    def report(self, severity: str, text: str) -> str:
        """Report an incident by the form; returns its path."""
        page = self.page
        self.goto("/incidents/new")
        page.fill("[name=description]", text)
        page.click("label.choice:has-text('arm_1')")
        page.click(f"label.choice.{severity}")
        page.click("label.choice:has-text('collision')")
        page.click("button.send")
        page.wait_for_url("**recorded=report")
        return str(page.url).removeprefix(self.url).split("?")[0]

    def open_form(self, title: str) -> Any:
        """Unfold one of the forms of an incident; returns it."""
        details = self.page.locator("details.act", has=self.page.get_by_text(title, exact=True))
        details.locator("> summary").click()
        return details

    def act(self, title: str, recorded: str, choice: str = "", **texts: str) -> None:
        """Fill and send one of the forms of an incident, and wait until that is recorded."""
        form = self.open_form(title)
        if choice:
            form.get_by_text(choice).click()
        for name, text in texts.items():
            form.locator(f"[name={name}]").fill(text)
        form.locator("button.send").click()
        if recorded:
            self.page.wait_for_url(f"**recorded={recorded}")


@pytest.fixture
def come(chromium: Any, served: Served) -> Iterator[Callable[..., Person]]:
    """Brings somebody who is logged in; until the end of the test no console may say anything."""
    people: list[Person] = []
    with ExitStack() as stack:

        def log_in(name: str, *, width: int = 1300, **options: Any) -> Person:
            context = chromium.new_context(
                viewport={"width": width, "height": 900}, accept_downloads=True, **options
            )
            stack.callback(context.close)
            person = Person(page=context.new_page(), context=context, url=served.url)
            people.append(person)
            person.page.set_default_timeout(PATIENCE_MS)
            person.page.on("console", lambda message: person.messages.append(message.text))
            person.page.on("pageerror", lambda error: person.messages.append(str(error)))
            context.add_cookies([{"name": COOKIE, "value": served.token(name), "url": served.url}])
            person.goto("/incidents")
            return person

        yield log_in
        said = [text for one in people for text in one.messages if not STATUS.match(text)]
        assert said == []


def sign_in(page: Any, name: str) -> None:
    page.fill("[name=name]", name)
    page.fill("[name=password]", PASSWORD)
    page.click("text=Log in")
    page.wait_for_url(lambda url: "/login" not in url)


def test_a_critical_incident_goes_from_report_to_closure(come: Any, served: Served) -> None:
    first, second = come("R. Example"), come("S. Example")
    path = first.report("critical", "The gripper touched the operator's forearm.")
    assert "Recorded." in first.page.locator("[role=status]").inner_text()
    assert "another person has to review it" in first.page.locator(".open-points").inner_text()

    # The second person reviews it, and reclassifies it, which asks for a review by another one.
    second.goto("/incidents")
    second.page.click("text=The gripper touched")
    second.act("Review", "review", "it happened as described", note="Looked at the recording.")
    assert second.page.locator(".pills .state").inner_text() == "confirmed"
    form = second.open_form("Reclassify")
    form.locator("[name=severity]").select_option("major")
    form.locator("[name=reason]").fill("First aid was enough.")
    form.locator("button.send").click()
    second.page.wait_for_url("**recorded=reclassification")
    assert second.page.locator(".pills .severity").inner_text() == "major"
    assert "counts as critical until reviewed" in second.page.locator(".pills").inner_text()
    assert "another person has to review it" in second.page.locator(".open-points").inner_text()

    first.goto(path)
    first.act("Review", "review", "it happened as described", note="I agree.")
    action = {"what": "A light curtain.", "owner": "R. Example", "due": "2030-01-31"}
    first.act("Add a corrective action", "action", **action)

    # Whoever owns the action does not say alone that it helped; what was typed stays.
    first.act("Check whether it helped", "", "yes", how="Tried it ten times.")
    alert = first.page.locator("#failed [role=alert]")
    alert.wait_for()
    assert "another person has to check whether it helped" in alert.inner_text()
    assert first.page.locator("#failed [name=how]").input_value() == "Tried it ten times."
    assert alert.evaluate("box => box === document.activeElement"), "it is read out"
    second.goto(path)
    second.act("Check whether it helped", "effectiveness", "yes", how="Tried it ten times.")
    second.act("Close it", "closure", note="Done.")
    assert second.page.locator(".pills .state").inner_text() == "closed"
    assert second.page.locator(".history li").count() == 7
    assert verify_log(served.path).ok

    auditor = come("Auditor")
    auditor.goto("/audit")
    seen = auditor.page.locator("section:last-of-type tr").all_inner_texts()
    assert any("R. Example" in line and "looked at" in line for line in seen)


@pytest.mark.slow
def test_a_list_is_filtered_and_goes_on(come: Any) -> None:
    person = come("Operator A")
    page = person.page
    rows = page.locator(".incidents tbody tr:not(.more)")
    page.evaluate("window.isSamePage = true")
    page.locator("[name=robot]").select_option("arm_2")
    page.wait_for_url("**robot=arm_2*")
    assert set(page.locator(".incidents td.robot").all_inner_texts()) == {"arm_2"}
    assert rows.count() == 40
    page.locator("[name=robot]").select_option("")
    page.locator(".more a").wait_for()
    before = rows.count()
    page.click("text=Older incidents")
    page.locator(".more").wait_for(state="detached")
    assert rows.count() > before
    page.locator("[name=text]").press_sequentially("number 17 with")
    page.locator(".incidents tbody tr").nth(1).wait_for(state="detached")
    assert "Stop number 17" in rows.inner_text()
    assert page.evaluate("window.isSamePage"), "the page was not loaded anew"
    person.goto("/incidents?severity=minor&robot=arm_1")
    assert rows.count() >= 4
    assert page.locator("[name=severity]").input_value() == "minor"


@pytest.mark.slow
def test_what_is_overdue_comes_first_and_leads_to_its_incident(come: Any) -> None:
    person = come("R. Example", width=390, has_touch=True, is_mobile=True)
    page = person.page
    path = person.report("major", "The tool touched a shelf.")
    action = {"what": "Move the shelf.", "owner": "Operator B", "due": "2020-04-01"}
    person.act("Add a corrective action", "action", **action)

    page.locator(".menu > summary").tap()
    page.get_by_role("link", name="To do", exact=True).click()
    first = page.locator(".incidents tbody tr").first
    assert "days overdue" in first.inner_text()
    assert "by somebody else than R. Example" in first.inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    before = page.locator(".incidents tbody tr").count()
    page.evaluate("window.isSamePage = true")
    page.locator(".fold > summary").tap()
    page.locator("[name=overdue]").select_option("yes")
    page.wait_for_url("**overdue=yes*")
    assert 0 < page.locator(".incidents tbody tr").count() < before
    assert page.evaluate("window.isSamePage"), "the page was not loaded anew"
    first.locator("a").click()
    page.wait_for_url(f"**{path}")


@pytest.mark.slow
def test_times_are_in_the_zone_of_who_reads_them(come: Any, served: Served) -> None:
    person = come("Operator A", timezone_id="America/New_York")
    page = person.page
    person.goto("/incidents/new")
    assert "America/New_York" in page.locator(".times").inner_text()
    offered = datetime.fromisoformat(page.locator("[name=happened]").input_value())
    now = datetime.now(ZoneInfo("America/New_York")).replace(tzinfo=None)
    assert abs(now - offered) < timedelta(minutes=10)
    page.fill("[name=description]", "Reported in another zone.")
    page.fill("[name=other_robot]", "zoned")
    page.click("label.choice.minor")
    page.click("label.choice:has-text('collision')")
    # Clocks were set forward at two: ten minutes before 03:05 it was 01:55.
    page.fill("[name=happened]", "2026-03-08T03:05:00")
    for _ in range(2):
        page.click("text=5 min earlier")
    assert page.locator("[name=happened]").input_value().startswith("2026-03-08T01:55")
    page.click("button.send")
    page.wait_for_url("**recorded=report")
    when = page.locator(".facts time")
    assert when.inner_text() == "2026-03-08 01:55:00 GMT-5"
    assert when.get_attribute("title") == "2026-03-08 06:55:00 UTC"

    # What a day is, a list says as well; its address can be passed on.
    rows = page.locator(".incidents tbody tr")
    for day, count in (("2026-03-07", 0), ("2026-03-08", 1)):
        person.goto("/incidents?robot=zoned")
        page.fill("[name=since]", day)
        page.fill("[name=until]", day)
        page.wait_for_url(f"**until={day}*")
        page.locator("caption" if count else ".empty").wait_for()
        assert rows.count() == count
    assert "Times and days are in America/New_York" in page.locator("caption").inner_text()
    assert rows.locator("time").inner_text() == "2026-03-08 01:55"
    page.reload()
    assert page.locator("[name=until]").input_value() == "2026-03-08"
    assert rows.count() == 1

    other = come("Operator A", timezone_id="Asia/Kolkata")
    other.goto(page.url.removeprefix(served.url))
    assert other.page.locator(".incidents time").inner_text() == "2026-03-08 12:25"
    plain = come("Operator A", java_script_enabled=False, timezone_id="Asia/Kolkata")
    plain.goto("/incidents?robot=zoned")
    assert "Times and days are in UTC" in plain.page.locator("caption").inner_text()
    plain.page.click("text=Reported in another zone.")
    assert plain.page.locator(".facts time").inner_text() == "2026-03-08 06:55:00 UTC"


@pytest.mark.slow
def test_a_day_or_month_of_a_zone_is_read_there_as_that(come: Any, served: Served) -> None:
    with open_log(served.path) as log:
        for text in ("2025-11-07 Europe/Berlin", "2025-11 Europe/Berlin"):
            report = Report(
                **times_of(text), robot="spans", side="real", severity="minor",
                category="collision", description="Found later.",
            )  # fmt: skip
            log.file(report, by="Operator A", via=Via.CLI)
    for zone, texts in (
        ("Europe/Berlin", ["2025-11-07", "2025-11"]),
        ("Asia/Kolkata", [
            "2025-11-06T23:00:00Z/2025-11-07T23:00:00Z",
            "2025-11 UTC+01:00",
        ]),
    ):  # fmt: skip
        person = come("Operator A", timezone_id=zone)
        person.goto("/incidents?robot=spans")
        assert person.page.locator("[data-begin]").all_inner_texts() == texts
        person.page.locator("tbody a").first.click()
        assert texts[0][:10] in person.page.locator(".facts [data-begin]").inner_text()


@pytest.mark.slow
def test_a_correction_leaves_a_time_alone_that_the_clocks_showed_twice(
    come: Any, served: Served
) -> None:
    twice = datetime(2025, 11, 2, 6, 30, tzinfo=UTC)  # 01:30 for the second time
    with open_log(served.path) as log:
        report = Report(
            happened_ns=int(twice.timestamp()) * 10**9, robot="arm_1", side="real",
            severity="near_miss", category="other", description="In the doubled hour.",
        )  # fmt: skip
        filed = log.file(report, by="Operator A", via=Via.WEB)
    person = come("R. Example", timezone_id="America/New_York")
    person.goto(f"/incidents/{filed.record_id}")
    form = person.open_form("Correct the report")
    assert form.locator("[name=happened]").input_value().startswith("2025-11-02T01:30")
    form.locator("[name=task]").fill("sorting")
    form.locator("[name=reason]").fill("was left out")
    form.locator("button.send").click()
    person.page.wait_for_url("**recorded=correction")
    said = person.page.locator(".history li").last.locator(".said").all_inner_texts()
    assert [" ".join(one.split()) for one in said] == ["Task none → sorting", "Why was left out"]
    wrong = {"happened": "2025-11-02T03:30:00", "reason": "the clock was read wrongly"}
    person.act("Correct the report", "", **wrong)
    person.page.get_by_text("the clock was read wrongly").wait_for()
    said = person.page.locator(".history li").last.locator(".said").first.inner_text()
    assert " ".join(said.split()) == "When 2025-11-02 06:30:00 UTC → 2025-11-02 08:30:00 UTC"


def test_every_field_is_named_and_a_refusal_is_read_out(come: Any) -> None:
    person = come("R. Example")
    path = person.report("minor", "Looked at by a screen reader.")
    page = person.page
    paths = (
        "/incidents",
        "/incidents/new",
        "/nil",
        "/export",
        "/safety",
        "/todo",
        "/account",
        path,
    )
    for one in paths:
        person.goto(one)
        unnamed = page.evaluate(
            """() => [...document.querySelectorAll('main :is(input, select, textarea)')]
               .filter(one => one.type !== 'hidden' && !one.hidden)
               .filter(one => ![...one.labels].some(l => l.innerText.trim()
                 || l.textContent.trim()))
               .map(one => one.outerHTML)"""
        )
        assert unnamed == [], one
    person.goto("/incidents/new")
    page.fill("[name=description]", "Typed.")
    page.click("label.choice.minor")
    page.click("label.choice:has-text('collision')")
    page.click("button.send")  # which robot it was is not said
    page.locator("main [role=alert]").wait_for()
    page.wait_for_function("() => document.activeElement.name === 'robot'")
    assert "say which robot" in page.evaluate(
        "document.getElementById(document.activeElement.getAttribute('aria-describedby')).innerText"
    )
    problem, question = (
        page.locator("[role=alert]:visible"),
        page.locator("legend:has-text('robot')"),
    )
    gap = problem.bounding_box()["y"] - question.first.bounding_box()["y"]
    assert 0 < gap < 100, "it stands beside its field"


@pytest.mark.slow
def test_on_a_tablet_nothing_is_cut_and_targets_are_large(come: Any) -> None:
    person = come("R. Example", width=800, has_touch=True, is_mobile=True)
    path = person.report("major", "A casting fell on the table. " + "longword" * 30)
    page = person.page
    form = person.open_form("Reclassify")
    form.locator("[name=severity]").select_option("minor")
    form.locator("[name=reason]").fill("It was an empty box.")
    form.locator("button.send").click()
    page.wait_for_url("**recorded=reclassification")
    for one in (path, "/incidents", "/todo", "/safety", "/nil", "/export", "/verify", "/none"):
        person.goto(one)
        for summary in page.locator("details:not([open]) > summary").all():
            if summary.is_visible():
                summary.tap()
        assert page.evaluate("document.documentElement.scrollWidth") == 800, one
        low = page.evaluate(
            """() => [...document.querySelectorAll(
                 'button, .button, summary, select, textarea, input, nav a, .inline label')]
               .filter(one => !['hidden', 'radio'].includes(one.type) && one.offsetParent)
               .filter(one => one.getBoundingClientRect().height < 44)
               .map(one => one.outerHTML)"""
        )
        assert low == [], one
    person.goto("/incidents")
    assert "counts as major until reviewed" in page.locator(".incidents").inner_text()


def test_lists_and_reports_need_no_script(come: Any, served: Served) -> None:
    person = come("Operator A", java_script_enabled=False)
    page = person.page
    page.locator("[name=severity]").select_option("minor")
    page.get_by_role("button", name="Filter").click()
    assert "severity=minor" in page.url
    page.click("text=Show all")
    page.click("text=Older incidents")
    assert "after=" in page.url
    before = served.count("report")
    person.report("near_miss", "Reported without script.")
    assert served.count("report") == before + 1
    assert page.locator(".needs-script:visible").count() == 0


@pytest.mark.parametrize("path", ["/incidents", "/todo"])
@pytest.mark.parametrize("has_script", [True, False])
@pytest.mark.slow
def test_filters_are_folded_on_phones_alone(come: Any, path: str, has_script: bool) -> None:
    wide = come("Operator A", width=800, java_script_enabled=has_script)
    wide.goto(path)
    assert wide.page.locator("[name=robot]").is_visible()
    assert not wide.page.locator(".fold").is_visible()
    phone = come("Operator A", width=390, java_script_enabled=has_script)
    phone.goto(path)
    page, robot = phone.page, phone.page.locator("[name=robot]")
    assert not robot.is_visible()
    page.locator(".fold > summary").focus()
    page.keyboard.press("Enter")
    robot.wait_for()
    robot.select_option("arm_1")
    page.get_by_role("button", name="Filter").click()
    page.wait_for_url("**robot=arm_1*")
    phone.goto(page.url.removeprefix(phone.url))
    assert robot.is_visible(), "what is asked for is not folded"


@pytest.mark.parametrize("has_script", [True, False])
def test_the_head_of_a_page_is_one_line_on_a_phone(come: Any, has_script: bool) -> None:
    person = come("R. Example", width=390, java_script_enabled=has_script)
    page = person.page
    assert page.locator("header.bar").bounding_box()["height"] < 70
    assert not page.locator("header nav").is_visible()
    page.locator(".menu > summary").click()
    page.get_by_role("link", name="To do").click()
    page.wait_for_url("**/todo")
    assert person.page.get_by_role("link", name="Report an incident").is_visible()
    wide = come("R. Example")
    assert not wide.page.locator(".menu").is_visible()
    assert wide.page.locator("header nav").is_visible()


def test_a_photo_is_sent_and_shown_small(come: Any, served: Served, tmp_path: Path) -> None:
    person = come("R. Example", width=390, has_touch=True, is_mobile=True)
    path = person.report("minor", "Seen on a photo.")
    page = person.page
    photo = tmp_path / "photo.png"
    page.screenshot(path=photo)
    form = person.open_form("Add photos or files")
    form.locator("[name=files]").set_input_files(photo)
    form.locator("button.send").click()
    page.wait_for_url("**recorded=attachment")
    picture = page.locator(".small-picture")
    picture.scroll_into_view_if_needed()
    page.wait_for_function("() => document.querySelector('.small-picture').naturalWidth > 0")
    assert picture.bounding_box()["width"] <= 390
    assert person.goto(path).status == 200


def test_names_and_numbers_are_not_broken(come: Any) -> None:
    person = come("R. Example", width=800)
    for path in ("/incidents", "/todo", "/safety"):
        person.goto(path)
        names = person.page.locator("#main .whole:visible")
        lines = names.evaluate_all("all => all.map(one => one.getClientRects().length)")
        assert set(lines) == {1}, path


@pytest.mark.slow
def test_exports_are_files(come: Any, tmp_path: Path) -> None:
    person = come("S. Example")
    page = person.page
    for button, name, begin in (
        ("Report to print", "incidents_2020-01-01.html", b"<!doctype html>"),
        ("CSV table", "incidents_2020-01-01.csv", b"\xef\xbb\xbfid,"),
        ("JSON", "incidents_2020-01-01.json", b"{"),
    ):
        person.goto("/export")
        page.fill("[name=since]", "2020-01-01")
        with page.expect_download() as download:
            page.get_by_role("button", name=button).click()
        assert download.value.suggested_filename == name
        download.value.save_as(tmp_path / name)
        data = (tmp_path / name).read_bytes()
        assert data.startswith(begin)
        assert len(data) > 3_000


@pytest.mark.slow
def test_a_long_report_prints_on_many_pages(come: Any, tmp_path: Path) -> None:
    from pypdf import PdfReader

    said = "The arm touched the fixture, \u0625\u064a\u0642\u0627\u0641. " + "word " * 300
    with open_log(tmp_path / "incidents.db", station="long", make=True) as log:
        for number in range(130):
            report = Report(
                happened_ns=NOW_NS - HOUR_NS, robot="arm_1", side="real", severity="minor",
                category="other", description=f"event {number}: {said}",
            )  # fmt: skip
            log.file(report, by="A", via=Via.CLI)
        paper.write_paper(log, tmp_path / "long.html")
    page = come("S. Example").page.context.browser.new_page()
    page.goto((tmp_path / "long.html").as_uri())
    sheets = PdfReader(BytesIO(page.pdf(prefer_css_page_size=True))).pages
    page.close()
    assert len(sheets) > 100
    assert f"/ {len(sheets)}" in sheets[-1].extract_text()
    for part in ("event 129", "arm touched"):
        assert part in sheets[-1].extract_text() + sheets[-2].extract_text()


@pytest.mark.slow
def test_a_forbidden_action_is_refused_and_changes_nothing(come: Any, served: Served) -> None:
    operator, auditor = come("Operator A"), come("Auditor")
    path = operator.report("near_miss", "Something small.")
    offered = operator.page.locator("details.act > summary").all_inner_texts()
    assert offered == [
        "Add photos or files", "Attach a file that is there already", "Correct the report",
    ]  # fmt: skip
    for person, paths in ((operator, ("/verify", "/export", "/audit")), (auditor, ("/nil",))):
        for forbidden in paths:
            assert person.goto(forbidden).status == 403
            assert "This is not for your account" in person.page.locator("main").inner_text()
    before = {kind: served.count(kind) for kind in ("review", "report")}
    auditor.goto(path)
    csrf = auditor.page.locator(".leave [name=csrf]").input_value()
    form = {"csrf": csrf, "verdict": "confirmed", "note": "forged"}
    form["record_id"] = "00000000-0000-4000-8000-000000000000"
    answer = auditor.context.request.post(f"{served.url}{path}/review", form=form)
    assert answer.status == 403
    form["csrf"] = "0" * 43
    reviewer = come("R. Example")
    answer = reviewer.context.request.post(f"{served.url}{path}/review", form=form)
    assert answer.status == 403
    assert {kind: served.count(kind) for kind in before} == before


def test_everything_can_be_done_by_keyboard(come: Any, chromium: Any, served: Served) -> None:
    person = come("R. Example")
    page, keys = person.page, person.page.keyboard

    def press(key: str, until: str, most: int = 80) -> None:
        for _ in range(most):
            keys.press(key)
            if page.evaluate("selector => document.activeElement.matches(selector)", until):
                outline = "getComputedStyle(%s).outlineStyle"
                own = page.evaluate(outline % "document.activeElement")
                beside = page.evaluate(
                    outline % "document.activeElement.nextElementSibling ?? document.body"
                )
                assert "solid" in {own, beside}, f"{until} shows that it has the focus"
                return
        raise AssertionError(f"{key} does not lead to {until}")

    press("Tab", ".skip", 1)
    keys.press("Enter")
    press("Shift+Tab", "a.button.main")
    keys.press("Enter")
    page.wait_for_url("**/incidents/new")
    keys.type("Reported by keyboard.")
    for until in ("[name=robot]", "[name=severity]", "[name=category]"):
        press("Tab", until)
        keys.press("Space")
        keys.press("ArrowDown")
    press("Tab", "button.send")
    keys.press("Enter")
    page.wait_for_url("**recorded=report")
    press("Tab", "details.act:not([open]) > summary")
    while page.evaluate("document.activeElement.innerText") != "Review":
        press("Tab", "details.act > summary")
    keys.press("Enter")
    press("Tab", "[name=verdict]")
    keys.press("Space")
    press("Tab", "[name=note]")
    keys.type("Seen by keyboard.")
    press("Tab", "button.send")
    keys.press("Enter")
    page.wait_for_url("**recorded=review")
    assert "Seen by keyboard." in page.locator(".history").inner_text()


def test_on_a_phone_nothing_is_cut_and_gloves_find_every_target(come: Any) -> None:
    person = come("R. Example", width=360, has_touch=True, is_mobile=True)
    path = person.report("major", "A casting of 4 kg fell on the table. " + "longword" * 30)
    page = person.page
    pages = (
        path, "/incidents", "/todo", "/safety", "/nil", "/export", "/verify", "/incidents/new",
        "/none",
    )  # fmt: skip
    for one in pages:
        person.goto(one)
        for summary in page.locator("details:not([open]) > summary").all():
            if summary.is_visible():
                summary.tap()
        assert page.evaluate("document.documentElement.scrollWidth") == 360, one
    person.goto("/incidents/new")
    page.locator("main details > summary").first.tap()
    low = page.evaluate(
        """() => [...document.querySelectorAll(
             '.glove :is(button, summary, textarea, select, input, .choice span)')]
           .filter(one => !['hidden', 'radio'].includes(one.type))
           .filter(one => one.getBoundingClientRect().height < 60)
           .map(one => one.outerHTML)"""
    )
    assert low == []


def test_a_report_survives_a_lost_connection_and_is_one(come: Any, served: Served) -> None:
    person = come("Operator A")
    page = person.page
    person.goto("/incidents/new")
    page.fill("[name=description]", "Typed without a connection.")
    page.fill("[name=other_robot]", "arm_9")
    page.click("label.choice.minor")
    page.click("label.choice:has-text('collision')")
    before = page.locator("[name=happened]").input_value()
    page.click("text=5 min earlier")
    assert page.locator("[name=happened]").input_value() != before
    count = served.count("report")
    person.context.set_offline(True)
    page.click("button.send")
    page.locator("#offline").wait_for()
    assert page.locator("[name=description]").input_value() == "Typed without a connection."
    person.context.set_offline(False)
    person.messages.clear()
    page.reload()
    assert page.locator("[name=description]").input_value() == "Typed without a connection."
    assert page.locator("[name=other_robot]").input_value() == "arm_9"
    page.dblclick("button.send")
    page.wait_for_url("**recorded=report")
    assert served.count("report") == count + 1
    person.goto("/incidents/new")
    assert page.locator("[name=description]").input_value() == ""


def test_a_session_ends_and_what_was_typed_is_there_after_it(come: Any, served: Served) -> None:
    person = come("Operator A")
    page = person.page
    person.goto("/incidents/new")
    page.fill("[name=description]", "Typed before the session ended.")
    page.click("label.choice.near_miss")
    page.click("label.choice:has-text('watchdog')")
    page.click("label.choice:has-text('arm_1')")
    count = served.count("report")
    served.end_sessions()
    page.click("button.send")
    page.wait_for_url("**/login?next=/incidents/new")
    assert served.count("report") == count
    sign_in(page, "Operator A")
    assert page.url.endswith("/incidents/new")
    assert page.locator("[name=description]").input_value() == "Typed before the session ended."
    assert page.locator("[name=severity]:checked").input_value() == "near_miss"
    page.click("button.send")
    page.wait_for_url("**recorded=report")
    assert served.count("report") == count + 1
    page.click("text=Log out")
    page.wait_for_url("**/login")
    assert person.goto("/incidents").url.endswith("/login?next=/incidents")


def test_a_link_in_an_e_mail_finds_whoever_is_logged_in(chromium: Any, served: Served) -> None:
    target = f"{served.url}/incidents?severity=minor"
    with closing(chromium.new_context()) as context:
        page = context.new_page()
        mail = f"data:text/html,<a href='{target}'>overdue</a>"
        page.goto(mail)
        page.click("a")
        page.fill("[name=name]", "R. Example")
        page.fill("[name=password]", PASSWORD)
        page.click("button")
        page.wait_for_url(target)
        page.goto(mail)
        page.click("a")
        page.wait_for_url(target)
        cookie = next(one for one in context.cookies() if one["name"] == COOKIE)
        assert (cookie["sameSite"], cookie["httpOnly"], cookie["secure"]) == ("Lax", True, False)


def test_behind_a_proxy_with_tls_cookies_are_sent_by_tls_alone(served: Served) -> None:
    for scheme in ("http", "https"):
        request = Request(f"{served.url}/login", headers={"X-Forwarded-Proto": scheme})
        with urlopen(request) as answer:
            assert ("Secure" in answer.headers["set-cookie"]) == (scheme == "https")


def test_the_recording_around_an_event_is_drawn_and_downloaded(come: Any, served: Served) -> None:
    person = come("Operator A", color_scheme="dark")
    person.page.click("text=Recorded stop.")
    person.page.wait_for_selector("svg.plot-chart")
    lines = person.page.evaluate(
        """() => [...document.querySelectorAll('.plot-series')].map(line => {
             const box = line.getBoundingClientRect();
             return [box.width, getComputedStyle(line).stroke]; })"""
    )
    assert len(lines) >= 4
    assert all(width > 300 and colour.startswith("rgb") for width, colour in lines)
    with person.page.expect_download() as download:
        person.page.click("text=arm.mcap")
    assert (
        Path(download.value.path()).read_bytes()
        == (served.path.parent / "incidents" / "arm.mcap").read_bytes()
    )


def test_rates_have_intervals_and_a_score(come: Any) -> None:
    person = come("Operator A")
    person.goto("/safety")
    text = person.page.locator("#found section").first.inner_text()
    assert text.startswith("Real robots")
    assert "80.0 h" in text
    assert re.search(r"near miss\s+\d+\s+[\d,.]+ \([\d,.]+ to [\d,.]+\)", text)
    assert re.search(r"Safety score SS\s+0\.\d{3}", text)
    assert person.page.locator("svg.range").count() == 4
    person.page.locator("[name=robot]").select_option("arm_2")
    person.page.get_by_text("rates need hours").first.wait_for()
    assert "not logged" in person.page.locator("#found section").first.inner_text()
