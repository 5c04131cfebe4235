"""Photos and files that are sent from a phone: kept beside the log, with a digest in the record."""

from __future__ import annotations

import hashlib
import io
from typing import Any

import pytest
from PIL import Image

from robo_eval.web.security import MOST_UPLOAD
from robo_eval_incidents.kinds import Evidence
from robo_eval_incidents.record import new_id

GPS = 0x8825


def photo(width: int = 900, height: int = 600, *, turned: bool = False) -> bytes:
    made = io.BytesIO()
    picture = Image.new("RGB", (width, height), "red")
    exif = Image.Exif()
    exif[0x0110] = "Phone 9"
    if turned:
        exif[0x0112] = 6
    picture.save(made, "JPEG", exif=exif)
    return made.getvalue()


class Phone:
    """Somebody who sends files."""

    def __init__(self, browse: Any, who: str) -> None:
        self.browser, self.web = browse(who), browse(who).web
        self.incident = browse("operator").report()

    def send(self, *files: tuple[str, bytes], **fields: str) -> Any:
        sent = [("files", (name, content)) for name, content in files]
        path = f"/incidents/{self.incident}/upload"
        return self.browser.post(path, {"note": "the fence"} | fields, files=sent or None)

    def get(self, path: str) -> Any:
        return self.browser.get(f"/incidents/{self.incident}{path}")

    @property
    def evidence(self) -> list[Evidence]:
        return self.web.log.incident(self.incident).evidence


@pytest.fixture
def phone(browse) -> Phone:
    return Phone(browse, "operator")


def kept(web: Any) -> set[str]:
    folder = web.log.evidence_folder / "incidents"
    return {one.name for one in folder.iterdir()} if folder.is_dir() else set()


def test_photos_are_kept_with_their_digest_and_shown_small(web, phone):
    data = photo(turned=True)
    answer = phone.send(("IMG 1.jpg", data), ("notes.pdf", b"%PDF-"))
    assert answer.status_code == 303, answer.text
    digest = hashlib.sha256(data).hexdigest()
    first, second = phone.evidence
    assert (first.uri, first.sha256) == (f"incidents/{digest[:16]}-IMG_1.jpg", digest)
    assert (web.log.evidence_folder / first.uri).read_bytes() == data
    assert second.uri.endswith("-notes.pdf")
    page = phone.get("").text
    assert page.count("small-picture") == 1
    small = phone.get("/evidence/0/small")
    assert small.headers["content-type"] == "image/jpeg"
    picture = Image.open(io.BytesIO(small.content))
    assert picture.size == (213, 320), "as it was held"
    assert not picture.getexif(), "nothing of the camera goes along"
    assert phone.get("/evidence/0").content == data
    assert phone.get("/evidence/1/small").status_code == 404


def test_sent_twice_it_is_one_record_and_one_file(web, phone):
    before, record_id = kept(web), new_id()
    for _ in range(2):
        assert phone.send(("a.jpg", photo(31, 20)), record_id=record_id).status_code == 303
    assert len(phone.evidence) == 1
    assert len(kept(web) - before) == 1


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ((), "choose a file"),
        ((("tool.exe", b"MZ"),), "evidence ends in"),
        ((("incidents.db", b"x"),), "evidence ends in"),
        ((("empty.jpg", b""),), "is empty"),
        ((("a.jpg", b"x"), ("b.sh", b"x")), "evidence ends in"),
    ],
)
def test_what_is_no_evidence_is_refused_and_nothing_is_recorded(web, phone, files, problem):
    answer = phone.send(*files)
    assert answer.status_code == 422
    assert problem in answer.text
    assert phone.evidence == []


def test_a_name_leads_nowhere_else(web, phone):
    assert phone.send(("../../../etc/x.txt", b"x"), ("..\\y.txt", b"y")).status_code == 303
    assert [one.uri.rsplit("-", 1)[1] for one in phone.evidence] == ["x.txt", "y.txt"]
    assert all(one.uri.startswith("incidents/") for one in phone.evidence)


def test_a_file_that_is_no_picture_has_no_thumbnail(web, phone):
    phone.send(("a.jpg", b"not a picture"), ("b.png", photo(20, 20)[:200]))
    assert [phone.get(f"/evidence/{n}/small").status_code for n in (0, 1)] == [404, 404]


def test_a_picture_that_was_changed_is_not_shown(web, phone):
    phone.send(("a.jpg", photo(40, 40)))
    (web.log.evidence_folder / phone.evidence[0].uri).write_bytes(photo(50, 50))
    answer = phone.get("/evidence/0/small")
    assert answer.status_code == 409
    assert "was changed" in answer.text


@pytest.mark.parametrize("who", ["auditor"])
def test_who_may_not_attach_sends_nothing(web, browse, who):
    phone, before = Phone(browse, who), kept(web)
    assert phone.send(("a.jpg", photo(60, 60))).status_code == 403
    assert kept(web) == before


def test_a_form_without_its_token_or_of_another_site_sends_nothing(web, phone):
    before = kept(web)
    assert phone.send(("a.jpg", photo(61, 60)), csrf="x").status_code == 403
    phone.browser.headers["sec-fetch-site"] = "cross-site"
    assert phone.send(("a.jpg", photo(62, 60))).status_code == 400
    phone.browser.headers = {}
    assert phone.send(("a.jpg", photo(63, 60))).status_code in (303, 401)
    assert kept(web) == before
    assert phone.evidence == []


def test_more_than_fits_is_refused_before_it_is_read(web, phone):
    path = f"/incidents/{phone.incident}/upload"
    for length in (str(MOST_UPLOAD + 1), "", "many"):
        headers = phone.browser.headers | {
            "content-length": length,
            "content-type": "multipart/form-data",
        }
        answer = web.client.post(path, content=b"x", headers=headers)
        assert answer.status_code == 413, length
    answer = web.client.post(path, content=b"x", headers=phone.browser.headers | {
        "content-type": "multipart/form-data; boundary=a"
    })  # fmt: skip
    assert answer.status_code == 400
    assert "cannot be read" in answer.text, answer.text[1500:]


def test_what_a_picture_says_of_itself_is_not_in_its_thumbnail(web, phone):
    made = io.BytesIO()
    Image.new("RGB", (900, 600), "red").save(made, "JPEG", comment=b"OWNER Jane Doe")
    assert phone.send(("a.jpg", made.getvalue())).status_code == 303
    found = phone.get("/evidence/0/small")
    assert found.status_code == 200
    assert b"OWNER" not in found.content


@pytest.mark.parametrize("letter", ["\u6f22", "\U0001d4b3", "\u00e9"])
def test_a_long_name_in_any_letters_is_kept_shorter(web, phone, letter):
    before = kept(web)
    assert phone.send((f"{letter * 90}.jpg", letter.encode())).status_code == 303
    (name,) = kept(web) - before
    assert len(name.encode()) <= 100
    assert name.endswith(".jpg")


def test_a_form_that_is_refused_keeps_no_file(web, phone):
    before = kept(web)
    assert phone.send(("a.txt", b"some words"), note="x" * 500).status_code == 422
    assert kept(web) == before
