"""An incident in one file: its parts have to mean the same, whoever made their digests."""

from __future__ import annotations

import base64
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.core.kinds import EndReason
from robo_eval.log.signing import fingerprint
from robo_eval_incidents import open_log
from robo_eval_incidents.capture import capture
from robo_eval_incidents.kinds import Action, Reclassification, Report, Review
from robo_eval_incidents.pack import (
    EPISODE,
    RECORDS,
    RULES,
    SETTINGS,
    digest,
    pack,
    stands_of,
)
from robo_eval_incidents.pack_check import verify_pack
from robo_eval_incidents.record import Record, content_digest, line_of, record_of, salted
from robo_eval_incidents.state import incident_of
from robo_eval_incidents.words import Category, Severity, Via

S = 10**9
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes([1] * 32))
FORM_9 = b'{"kind": "robo-eval incident pack", "files": {}, "form": 9}'
FORCE = {"value": "61.5", "limit": "50", "unit": "N", "joint": "wrist"}


def public(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


@pytest.fixture
def made(lab, tmp_path, say) -> Callable[..., Path]:
    """Packs a force that was too high, judged by a person; returns the file."""

    def make() -> Path:
        lab.play(lab.cause(15.0, "force", **FORCE), (15.1, "state", "PROTECTIVE_STOP"))
        capture(lab.path)
        with open_log(lab.path) as log:
            (incident,) = log.incidents()
            for body in (
                Reclassification(severity="minor", category="force_limit", reason="a scratch"),
                Review(verdict="confirmed", note="seen in the trace"),
                Action(what="a longer guard", owner="Operator C"),
            ):
                by = "Operator A" if isinstance(body, Reclassification) else "Operator B"
                say(log, body, incident_id=incident.incident_id, by=by)
            out = tmp_path / "one.zip"
            pack(log, incident.name, out, key=KEY, by="Operator A", trial=lab.path)
        return out

    return make


def forged(pack_: Path, change: Callable[[dict[str, bytes], dict[str, Any]], None]) -> Path:
    """The same pack with a change, all digests made anew, signed by somebody else."""
    with zipfile.ZipFile(pack_) as file:
        parts = {one: file.read(one) for one in file.namelist()}
    statement = json.loads(parts.pop("statement.json"))
    parts.pop("statement.sig")
    change(parts, statement)
    statement["files"] = {name: digest(data) for name, data in parts.items()}
    statement["public_key"] = base64.b64encode(public(OTHER)).decode()
    text = canonical_json(statement)
    parts["statement.json"] = text
    parts["statement.sig"] = base64.b64encode(OTHER.sign(text))
    out = pack_.with_name("forged.zip")
    with zipfile.ZipFile(out, "w") as file:
        for name, data in parts.items():
            file.writestr(name, data)
    return out


def records_of(parts: dict[str, bytes]) -> list[Record]:
    lines = [line.partition("\t") for line in parts[RECORDS].decode().splitlines()]
    return [record_of(content, texts or None, where="x") for content, _, texts in lines]


def written(records: list[Record]) -> bytes:
    """Records with digests and salts made anew."""
    lines = []
    for record in records:
        object.__setattr__(record, "salts", salted(record.kind, record.body))
        texts = record.forms()[1]
        lines.append(record.content() + (f"\t{texts}\n" if texts else "\n"))
    return "".join(lines).encode()


def said(**fields: Any) -> Callable[[dict[str, bytes], dict[str, Any]], None]:
    """Other values in the first report, and in how the incident stands."""

    def change(parts: dict[str, bytes], statement: dict[str, Any]) -> None:
        first, *others = records_of(parts)
        object.__setattr__(first, "body", first.body.model_copy(update=fields))
        parts[RECORDS] = written([first, *others])
        for name, value in fields.items():
            if name in statement["stands"]:
                statement["stands"][name] = value

    return change


# Packing ---------------------------------------------------------------------------------------


def test_what_was_packed_is_whole_and_signed(made):
    report = verify_pack(made(), signed_by=fingerprint(public(KEY)))
    assert report.problems == ()
    assert report.signer == fingerprint(public(KEY))
    assert report.checked == (
        "5 files by digest",
        "5 records, and how the incident stands by them",
        "1 file of evidence",
        "plan and episode",
        "the draft, made again from rules, trace and row",
    )
    assert [note.partition(" is not in it")[0][:7] for note in report.notes] == ["traces/"]


def test_an_incident_that_somebody_reported_is_packed_without_rules(log, say, report, tmp_path):
    made = say(log, report())
    done = pack(log, made.name, tmp_path / "x.zip", key=KEY, by="Operator A")
    assert (done.records, done.files, done.left, done.settings) == (1, (), (), False)
    found = verify_pack(tmp_path / "x.zip")
    assert found.ok
    assert found.notes == ("it holds no settings: neither plan nor row of an episode",)


def test_an_ending_without_a_trace_is_drafted_again_from_its_row(lab, tmp_path):
    lab.play(end_reason=EndReason.OUT_OF_BOUNDS, end_detail=None, has_trace=False)
    capture(lab.path)
    out = tmp_path / "x.zip"
    with open_log(lab.path) as log:
        pack(log, log.incidents()[0].name, out, key=KEY, by="Operator A", trial=lab.path)
    found = verify_pack(out)
    assert found.ok
    assert "the draft, made again from rules, trace and row" in found.checked


def test_an_episode_that_is_not_of_the_trial_is_named(lab, log, say, report, tmp_path):
    made = say(log, report(episode_id="elsewhere"))
    with pytest.raises(InputError, match="has no episode 'elsewhere'"):
        pack(log, made.name, tmp_path / "x.zip", key=KEY, by="Operator A", trial=lab.path)
    assert not (tmp_path / "x.zip").exists()


# What is found ---------------------------------------------------------------------------------


def test_one_changed_byte_anywhere_is_found(made):
    path = made()
    with zipfile.ZipFile(path) as file:
        parts = {one: file.read(one) for one in file.namelist()}
    for name in parts:
        changed = parts | {name: parts[name][:-2] + bytes([parts[name][-2] ^ 1]) + parts[name][-1:]}
        out = path.with_name("changed.zip")
        with zipfile.ZipFile(out, "w") as file:
            for place, data in changed.items():
                file.writestr(place, data)
        try:
            found = verify_pack(out)
        except InputError:
            assert name == "statement.json"
        else:
            assert not found.ok, name


def _other_trace(parts: dict[str, bytes], _: Any) -> None:
    (name,) = [one for one in parts if one.endswith(".mcap")]
    parts[name] = parts[name][:-1]


def _other_row(**cells: Any) -> Callable[[dict[str, bytes], Any], None]:
    def change(parts: dict[str, bytes], _: Any) -> None:
        parts[EPISODE] = json.dumps(json.loads(parts[EPISODE]) | cells).encode()

    return change


def _milder(parts: dict[str, bytes], statement: dict[str, Any]) -> None:
    statement["stands"]["severity"] = "near_miss"


def _without_review(parts: dict[str, bytes], _: Any) -> None:
    parts[RECORDS] = b"".join(
        line for line in parts[RECORDS].splitlines(keepends=True) if b'"kind":"review"' not in line
    )


def _out_of_order(parts: dict[str, bytes], _: Any) -> None:
    lines = parts[RECORDS].splitlines(keepends=True)
    parts[RECORDS] = b"".join([*lines[:-2], lines[-1], lines[-2]])


def _other_rule(parts: dict[str, bytes], _: Any) -> None:
    entries = json.loads(parts[RULES])
    for one in entries:
        if one.get("rule", {}).get("name") == "force":
            one["rule"]["severity"] = "critical"
    parts[RULES] = json.dumps(entries).encode()


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        (said(severity=Severity.MINOR), RECORDS, "severity of the draft and of its sources differ"),
        (
            said(quantities=()),
            RECORDS,
            "quantities of the draft and of its sources differ: none",
        ),
        (said(category=Category.DAMAGE), RECORDS, "category of the draft"),
        (said(robot="arm_9"), EPISODE, "has robot arm, the incident has arm_9"),
        (said(policy="other"), EPISODE, "has policy balancer, the incident has other"),
        (said(description="Nothing."), RECORDS, "does not say what its sources do: - force: Bec"),
        (_other_trace, "evidence/", "is another file than the one that was attached"),
        (_other_row(robot="arm_9"), EPISODE, "has robot arm_9, the incident has arm"),
        (_other_row(plan_digest="0" * 64), SETTINGS, "is not the plan that the episode"),
        (_other_row(plan_digest="0" * 64), RECORDS, "the id of the incident is not that"),
        (_milder, "statement.json", "says another severity than the records"),
        (_without_review, "statement.json", "says another reviewed_by, status than"),
        (_out_of_order, RECORDS, "stands after"),
        (_other_rule, RECORDS, "severity of the draft and of its sources differ"),
    ],
)
def test_an_edit_with_all_digests_made_anew_is_found(made, change, where, what):
    found = verify_pack(forged(made(), change))
    assert any(one.file.startswith(where) and what in one.what for one in found.problems), (
        found.problems
    )


def test_another_key_is_seen_where_the_right_one_is_known(made):
    path = forged(made(), lambda parts, statement: None)
    assert verify_pack(path).ok, "nothing was changed"
    found = verify_pack(path, signed_by=fingerprint(public(KEY)))
    assert [one.what for one in found.problems] == [f"is not by key {fingerprint(public(KEY))}"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is not a zip file"),
        (b"PK\x05\x06" + bytes(18), "is not a pack of an incident"),
        ({"statement.json": b"{}"}, "is not a pack of an incident"),
        (
            {"statement.json": b'{"kind": "robo-eval incident pack", "files": {}, "form": 9}'},
            "form 9",
        ),
    ],
)
def test_what_is_no_pack_is_refused(tmp_path, content, problem):
    path = tmp_path / "x.zip"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        with zipfile.ZipFile(path, "w") as file:
            for name, data in content.items():
                file.writestr(name, data)
    with pytest.raises(InputError, match=problem):
        verify_pack(path)


def relinked(edit: Callable[[list[Record]], None]) -> Callable[..., None]:
    """Records that somebody edited, with chain, digests and how the incident stands made anew."""

    def change(parts: dict[str, bytes], statement: dict[str, Any]) -> None:
        records = records_of(parts)
        edit(records)
        lines = []
        for number, record in enumerate(records):
            record.salts = salted(record.kind, record.body)
            if number:
                record.previous_sha256 = content_digest(lines[-1].partition("\t")[0].rstrip("\n"))
            lines.append(line_of(*record.forms()))
        parts[RECORDS] = "".join(lines).encode()
        incident = incident_of(records_of(parts))
        assert incident is not None
        statement["stands"] = stands_of(incident)

    return change


def _milder(records: list[Record], **more: Any) -> None:
    mild = {"severity": Severity.NEAR_MISS, "quantities": (), "description": "Nothing much."}
    records[0].body = records[0].body.model_copy(update=mild | more)


def _by_a_person(records: list[Record]) -> None:
    _milder(records)
    records[0].via = Via.CLI


def _a_moment_later(records: list[Record]) -> None:
    assert isinstance(records[0].body, Report)
    _milder(records, happened_ns=records[0].body.happened_ns + 1)


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        (_by_a_person, "and was filed by"),
        (_by_a_person, "and no rule drafted the incident"),
        (_a_moment_later, "show nothing at the time of the draft"),
    ],
)
def test_a_draft_that_was_made_something_else_is_found(made, edit, problem):
    report = verify_pack(forged(made(), relinked(edit)))
    assert any(problem in one.what for one in report.problems), report.problems


def test_a_plan_without_its_episode_is_found(made):
    report = verify_pack(forged(made(), lambda parts, _: parts.pop(EPISODE) and None))
    assert any("is missing beside" in one.what for one in report.problems)


def test_a_text_with_a_line_of_another_kind_is_packed(log, say, report, tmp_path):
    made = say(log, report(description="it fell\u2028and lay there"))
    pack(log, made.name, tmp_path / "x.zip", key=KEY, by="Operator A")
    assert verify_pack(tmp_path / "x.zip").problems == ()


def test_what_happened_in_no_episode_is_packed_without_settings(lab, say, report, tmp_path):
    with open_log(lab.path, make=True) as log:
        made = say(log, report())
        done = pack(log, made.name, tmp_path / "x.zip", key=KEY, by="A", trial=lab.path)
    assert done.settings is False
