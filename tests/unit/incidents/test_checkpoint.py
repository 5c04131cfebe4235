"""Checkpoints: what they state, what they find, and who has signed and stamped them."""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import subprocess
import threading

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.canonical import canonical_json
from robo_eval.core.errors import InputError
from robo_eval.log.signing import fingerprint
from robo_eval_incidents import checkpoint as checkpoints
from robo_eval_incidents import open_log
from robo_eval_incidents.checkpoint import (
    Checkpoint,
    check_stamp,
    checkpoints_of,
    make_checkpoint,
    merkle_root,
    read_checkpoint,
    stamp,
    write_checkpoint,
)
from robo_eval_incidents.merge import merge
from robo_eval_incidents.verify import verify_log


@pytest.fixture
def key():
    return Ed25519PrivateKey.generate()


@pytest.fixture
def kept(log, key, report, say, tmp_path):
    """A checkpoint after three records, in a file elsewhere."""
    for number in range(3):
        say(log, report(description=f"event {number}"))
    path = tmp_path / "elsewhere" / "one.json"
    path.parent.mkdir()
    write_checkpoint(make_checkpoint(log, key, by="Operator A"), path)
    return path


def _problems(path, *kept, **more):
    return [problem.what for problem in verify_log(path, checkpoints=kept, **more).problems]


# The tree --------------------------------------------------------------------------------------


def _leaf(name, sequence, digest):
    return hashlib.sha256(b"\0" + canonical_json([name, sequence, digest])).digest()


def test_the_root_of_known_trees():
    """RFC 6962, section 2.1, written out for one, two and three leaves."""
    a, b, c = (_leaf(name, 1, "00") for name in "abc")
    node = lambda left, right: hashlib.sha256(b"\1" + left + right).digest()  # noqa: E731
    heads = dict.fromkeys("abc", (1, "00"))
    assert merkle_root({"a": heads["a"]}) == a.hex()
    assert merkle_root({"b": heads["b"], "a": heads["a"]}) == node(a, b).hex()
    assert merkle_root(heads) == node(node(a, b), c).hex()


_HEADS = st.dictionaries(
    st.text("abc123", min_size=1, max_size=5),
    st.tuples(st.integers(1, 9), st.sampled_from(["00", "01"])),
    max_size=9,
)


@given(_HEADS, _HEADS)
def test_other_heads_have_another_root(one, other):
    assert (merkle_root(one) == merkle_root(other)) == (one == other)


# What it finds ---------------------------------------------------------------------------------


def test_a_log_that_grew_still_is_the_one_of_the_checkpoint(log, path, kept, nil, say):
    say(log, nil(1))
    found = verify_log(path, checkpoints=[kept])
    assert found.ok, found.problems
    assert found.checkpoints == 1, "the log has it as well"
    (one,) = found.kept
    assert (one.covered, one.since, one.fits) == (4, 1, True)
    assert one.signer == read_checkpoint(kept).signer
    assert one.time_ns == json.loads(read_checkpoint(kept).content)["time_ns"]
    assert "covers 4 of 5 records; 1 was added since" in list(found.lines())[-1]
    assert found.as_dict()["kept"][0]["time"].startswith("20")


def test_what_came_from_other_stations_was_added_since(path, log, kept, tmp_path, report, say):
    with open_log(tmp_path / "b" / "incidents.db", station="cell-2", make=True) as other:
        say(other, report())
    merge(tmp_path / "b" / "incidents.db", log)
    (one,) = verify_log(path, checkpoints=[kept]).kept
    assert (one.covered, one.since, one.fits) == (4, 2, True)


@pytest.mark.parametrize("lost", [1, 2, 4])
def test_the_loss_of_the_tail_is_found_back_to_the_checkpoint(path, log, kept, tamper, lost):
    """Somebody cuts the tail, and makes all of the file agree with it."""
    log.close()
    last = 4 - lost
    tables = ("records", "incidents", "times")
    tamper(*(f"DELETE FROM {table} WHERE sequence > {last}" for table in tables))
    tamper("DELETE FROM checkpoints")
    tamper(
        f"UPDATE stations SET sequence = {last}, sha256 = (SELECT sha256 FROM records"
        f" WHERE sequence = {last})"
        if last
        else "DELETE FROM stations"
    )
    assert _problems(path) == []
    assert any(f"had 4 records, {lost} of them are lost" in what for what in _problems(path, kept))


def test_a_chain_that_was_written_anew_is_found(path, log, kept, report, say, tmp_path):
    """Whoever can write the file can write a whole other chain."""
    other = tmp_path / "other" / "incidents.db"
    with open_log(other, station="cell-1", make=True) as forged:
        for _ in range(5):
            say(forged, report(description="nothing happened"))
    assert _problems(other) == []
    assert any("the chain was written anew" in what for what in _problems(other, kept))


def test_every_byte_of_a_checkpoint_counts(kept, log):
    whole = read_checkpoint(kept)
    assert whole.problems() == []
    for place in range(len(whole.content)):
        changed = chr(ord(whole.content[place]) ^ 1)
        content = whole.content[:place] + changed + whole.content[place + 1 :]
        assert Checkpoint(content=content, signature=whole.signature).problems()
    raw = base64.b64decode(whole.signature)
    for place in range(len(raw)):
        changed = raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
        signature = base64.b64encode(changed).decode()
        assert Checkpoint(content=whole.content, signature=signature).problems()


@pytest.mark.parametrize("column", ["content", "signature"])
def test_a_changed_checkpoint_in_the_log_is_found(path, log, kept, tamper, column):
    log.close()
    tamper(f"UPDATE checkpoints SET {column} = 'A' || {column}")
    assert any(what.startswith("checkpoint 1: ") for what in _problems(path))


def test_a_wrong_digest_beside_a_checkpoint_is_found_and_spoils_no_other(
    path, log, key, kept, tamper
):
    tamper("UPDATE checkpoints SET sha256 = 'x'")
    assert _problems(path) == ["checkpoint 1: is filed as another one than it is"]
    make_checkpoint(log, key, by="Operator A")
    assert _problems(path) == ["checkpoint 1: is filed as another one than it is"]


def test_a_removed_checkpoint_is_found_by_the_next(path, log, key, kept, tamper):
    make_checkpoint(log, key, by="Operator A")
    log.close()
    tamper("DELETE FROM checkpoints WHERE number = 1")
    assert _problems(path) == ["checkpoint 1: does not follow the one before it"]


def test_who_signed_is_compared(path, log, key, kept):
    own = fingerprint(key.public_key().public_bytes_raw())
    assert _problems(path, kept, signed_by=own) == []
    other = fingerprint(Ed25519PrivateKey.generate().public_key().public_bytes_raw())
    assert any("was signed by" in what for what in _problems(path, kept, signed_by=other))


def test_who_should_have_signed_is_missed_where_nobody_has(path, log, nil, say):
    say(log, nil(1))
    assert "no checkpoint that 00 could have signed" in _problems(path, signed_by="00")[0]


def test_a_root_that_does_not_fit_is_found(key, kept):
    """The signer lies: a signed statement whose root is not that of its stations."""
    values = json.loads(read_checkpoint(kept).content)
    values["merkle_root"] = "0" * 64
    content = canonical_json(values).decode()
    signature = base64.b64encode(key.sign(content.encode())).decode()
    assert Checkpoint(content=content, signature=signature).problems() == [
        "names a root that is not the one of its stations"
    ]


@pytest.mark.parametrize(
    "data",
    [b"", b"{}", b"[]", b"\xff", b'{"checkpoint": 1, "signature": 2}', b"[" * 50_000],
)
def test_a_file_that_is_no_checkpoint_is_refused(path, log, tmp_path, data):
    bad = tmp_path / "bad.json"
    bad.write_bytes(data)
    with pytest.raises(InputError, match=r"bad\.json: is not a checkpoint"):
        verify_log(path, checkpoints=[bad])


def test_a_checkpoint_of_another_log_says_what_is_missing(path, log, kept, tmp_path, report, say):
    other = tmp_path / "b" / "incidents.db"
    with open_log(other, station="cell-2", make=True) as opened:
        say(opened, report())
    assert "station cell-1 had 4 records, 4 of them are lost" in _problems(other, kept)[0]


# Time stamps -----------------------------------------------------------------------------------


_AUTHORITY = """
[tsa]
default_tsa = here
[here]
serial = serial
crypto_device = builtin
signer_cert = certificate.pem
signer_key = key.pem
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256, sha384, sha512
"""
_REQUEST = """
[req]
distinguished_name = name
prompt = no
x509_extensions = use
[name]
CN = Time stamps of a test
[use]
extendedKeyUsage = critical,timeStamping
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    """A real time-stamping authority, by OpenSSL, on this machine."""
    folder = tmp_path_factory.mktemp("authority")
    (folder / "tsa.cnf").write_text(_AUTHORITY)
    (folder / "req.cnf").write_text(_REQUEST)
    (folder / "serial").write_text("01\n")
    _openssl(
        folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-config",
        "req.cnf", "-keyout", "key.pem", "-out", "certificate.pem",
    )  # fmt: skip

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            query = self.rfile.read(int(self.headers["content-length"]))
            (folder / "query.tsq").write_bytes(query)
            _openssl(
                folder, "ts", "-reply", "-config", "tsa.cnf", "-queryfile", "query.tsq",
                "-out", "reply.tsr",
            )  # fmt: skip
            self.send_response(200)
            self.end_headers()
            self.wfile.write((folder / "reply.tsr").read_bytes())

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def _openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def test_an_authority_confirms_when_a_checkpoint_was_there(path, log, kept, authority, tmp_path):
    folder, url = authority
    (own,) = checkpoints_of(log)
    stamped = stamp(log, own, url)
    assert checkpoints_of(log) == [stamped]
    assert check_stamp(stamped).problem is None
    found = verify_log(path)
    assert found.ok, found.problems
    assert any("checkpoint 1: stamped 20" in note for note in found.notes)
    # OpenSSL, which knows nothing of this program, says the same.
    (folder / "content").write_text(stamped.content)
    (folder / "stamp.tsr").write_bytes(base64.b64decode(stamped.stamp))
    _openssl(
        folder, "ts", "-verify", "-data", "content", "-in", "stamp.tsr",
        "-CAfile", "certificate.pem",
    )  # fmt: skip
    again = tmp_path / "stamped.json"
    write_checkpoint(stamped, again)
    assert read_checkpoint(again) == stamped


def test_a_stamp_of_something_else_is_found(path, log, key, kept, authority, say, nil):
    (own,) = checkpoints_of(log)
    stamped = stamp(log, own, authority[1])
    say(log, nil(1))
    other = make_checkpoint(log, key, by="Operator A")
    moved = Checkpoint(content=other.content, signature=other.signature, stamp=stamped.stamp)
    assert "is over something else" in check_stamp(moved).problem
    broken = Checkpoint(content=own.content, signature=own.signature, stamp="AAAA")
    assert "cannot be read" in check_stamp(broken).problem


@pytest.mark.parametrize("time_ns", [None, "now", -1, 10**30, True])
def test_a_checkpoint_may_name_no_time(path, log, key, kept, time_ns):
    """Whoever has a key can sign any statement."""
    values = json.loads(read_checkpoint(kept).content) | {"time_ns": time_ns}
    content = canonical_json(values).decode()
    signature = base64.b64encode(key.sign(content.encode())).decode()
    write_checkpoint(Checkpoint(content=content, signature=signature), kept)
    found = verify_log(path, checkpoints=[kept])
    assert found.ok, found.problems
    assert found.checkpoints == 2
    assert "at no time it names, covers 4 of 4 records; none were added since" in str(found.kept[0])


@pytest.mark.parametrize(
    "url",
    [
        "ftp://127.0.0.1", "file:///etc/passwd", "http://127.0.0.1:9", "http://[x", "http://a b",
        "https://", "http://a:b", "http://x\x00",
    ],
)  # fmt: skip
def test_an_authority_that_does_not_answer_costs_no_checkpoint(log, kept, url):
    (own,) = checkpoints_of(log)
    with pytest.raises(InputError) as caught:
        stamp(log, own, url)
    assert repr(url)[1:-1] in str(caught.value)
    assert checkpoints_of(log) == [own]


def test_an_answer_that_is_none_is_refused(log, kept, monkeypatch):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>no</html>")

        def log_message(self, *_):
            pass

    monkeypatch.setattr(checkpoints, "_STAMP_S", 5)
    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.handle_request, daemon=True).start()
    (own,) = checkpoints_of(log)
    with pytest.raises(InputError, match="does not stamp"):
        stamp(log, own, f"http://127.0.0.1:{server.server_port}")
    server.server_close()
