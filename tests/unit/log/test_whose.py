"""An incident and the episode it falls into belong to one policy, and evidence does not vanish."""

from collections.abc import Callable
from datetime import UTC, datetime

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robo_eval.core.kinds import Side
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.evidence import Incident
from robo_eval.log.evidence_read import read_evidence
from robo_eval.log.spans import SLACK_NS, Windows, other_policy
from robo_eval.log.store import EpisodeStore
from robo_eval.log.verify import verify_trial
from robo_eval.metrics.attribution import attribute
from robo_eval.metrics.frame import episodes_frame

S = 10**9
START = 1_700_000_000 * S


@pytest.fixture
def played(trial: TrialDirectory, make_episode: Callable) -> TrialDirectory:
    """Two policies on a robot in turn, 10 s each, and files of evidence beside them."""
    with trial.lock(), EpisodeStore(trial.path, durable=False) as store:
        store.append(
            make_episode(
                i,
                plan_digest=trial.plan_digest, side=Side.REAL, robot="arm", policy="ab"[i % 2],
                start_ns=START + 60 * i * S, duration_s=10.0, exposure_s=10.0,
            )
            for i in range(5)
        )  # fmt: skip
        (trial.path / "faults.csv").write_text("fault,recovered\n")
        note(trial, "b", 5)
        trial.write_manifest(status="complete", store=store)
    return trial


def stamp(second: float) -> str:
    return datetime.fromtimestamp(START / S + second, UTC).isoformat()


def note(trial: TrialDirectory, policy: str, second: float) -> None:
    (trial.path / "incidents.csv").write_text(
        f"incident_id,severity,time,policy\nhand,critical,{stamp(second)},{policy}\n"
    )


def findings(trial: TrialDirectory) -> list[str]:
    table = episodes_frame(trial.frame())
    return list(map(str, attribute(read_evidence(trial.path), table).findings))


@pytest.mark.parametrize("second", [0.1, 5, 9.9, 245])
def test_an_incident_while_another_policy_played_is_found(
    played: TrialDirectory, second: float
) -> None:
    note(played, "b", second)
    (problem,) = verify_trial(played.path).problems
    assert problem.file == "incidents.csv"
    (finding,) = [one for one in findings(played) if "'hand'" in one]
    for text in (problem.what, finding):
        assert "'hand'" in text
        assert "policy 'b'" in text
        assert "policy 'a' played" in text
    whose = attribute(read_evidence(played.path), episodes_frame(played.frame())).incidents
    # Whose it is nobody can tell, so neither is without it.
    assert {policy for _, policy in whose} == {"a", "b"}


def test_an_incident_of_an_episode_at_another_time_is_found(played: TrialDirectory) -> None:
    (played.path / "incidents.csv").write_text(
        f"incident_id,severity,time,episode_id\nhand,critical,{stamp(5)},e1\n"
    )
    (problem,) = verify_trial(played.path).problems
    assert "policy 'b'" in problem.what
    assert "policy 'a' played" in problem.what


@pytest.mark.parametrize("cells", [f"{stamp(5)},e1,", f"{stamp(5)},e1,b", ",e0,b"])
def test_an_incident_of_the_episode_of_another_counts_for_both(
    played: TrialDirectory, cells: str
) -> None:
    (played.path / "incidents.csv").write_text(
        f"incident_id,severity,time,episode_id,policy\nhand,critical,{cells}\n"
    )
    (problem,) = verify_trial(played.path).problems
    (finding,) = [one for one in findings(played) if "'hand'" in one]
    for text in (problem.what, finding):
        assert "policy 'b'" in text
        assert "policy 'a' played" in text
    whose = attribute(read_evidence(played.path), episodes_frame(played.frame())).incidents
    assert {policy for _, policy in whose} == {"a", "b"}


@pytest.mark.parametrize("second", [65, 59.5, 70.5, 30, 10.5])
def test_an_incident_beside_its_own_policy_is_none(played: TrialDirectory, second: float) -> None:
    note(played, "b", second)
    assert verify_trial(played.path).ok
    assert not [one for one in findings(played) if "policy 'a' played" in one]


@pytest.mark.parametrize("name", ["faults.csv", "incidents.csv"])
def test_evidence_that_is_gone_is_named(played: TrialDirectory, name: str) -> None:
    note(played, "a", 5)
    assert verify_trial(played.path).ok
    (played.path / name).unlink()
    (problem,) = verify_trial(played.path).problems
    assert problem.file == name
    with played.lock(), EpisodeStore(played.path, durable=False) as store:
        played.write_manifest(status="complete", store=store)  # a resumed run forgets nothing
    assert [one.file for one in verify_trial(played.path).problems] == [name]


def test_evidence_that_cannot_be_read_is_a_problem_of_its_file(played: TrialDirectory) -> None:
    (played.path / "incidents.csv").write_text("incident_id,severity\nhand,grave\n")
    (problem,) = verify_trial(played.path).problems
    assert (problem.file, "line 2" in problem.what) == ("incidents.csv", True)


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20), st.sampled_from("abc")))


@given(SPANS, st.integers(0, 80), st.sampled_from("abcd"))
def test_it_is_found_if_only_others_played(spans, at: int, policy: str) -> None:
    rows = pd.DataFrame(
        [(f"e{i}", who, START + s * S, float(n), 0.0) for i, (s, n, who) in enumerate(spans)],
        columns=["episode_id", "policy", "start_ns", "duration_s", "exposure_s"],
    )
    incident = Incident(
        line=2, incident_id="i", severity="minor", time_ns=START + at * S, policy=policy
    )
    inside = {who for s, n, who in spans if s <= at <= s + n}
    near = {who for s, n, who in spans if s * S - SLACK_NS <= at * S <= (s + n) * S + SLACK_NS}
    found = other_policy(incident, Windows.of(rows))
    assert (found is not None) == bool(inside and policy not in near)
    assert found is None or any(f"policy {one!r} played" in found for one in inside)


@pytest.mark.parametrize("has_records", [True, False])
def test_an_incident_log_that_another_replaced_is_named(
    played: TrialDirectory, has_records: bool
) -> None:
    from robo_eval_incidents.kinds import Nil
    from robo_eval_incidents.log import open_log
    from robo_eval_incidents.words import Via

    def nil(station: str) -> None:
        shift = Nil(start_ns=START, end_ns=START + 300 * S, robot="arm")
        with open_log(path, station=station, make=True) as log:
            log.file(shift, by="R. Example", via=Via.CLI)

    def end_of_run() -> None:
        with played.lock(), EpisodeStore(played.path, durable=False) as store:
            played.write_manifest(status="complete", store=store)

    (played.path / "incidents.csv").unlink()
    path = played.path / "incidents.db"
    with open_log(path, station="cell", make=True):
        pass
    if has_records:
        nil("cell")
    end_of_run()
    assert verify_trial(played.path).problems == ()
    nil("cell")  # what people note afterwards goes on from it
    assert verify_trial(played.path).problems == ()
    path.unlink()
    nil("cell")
    for _ in range(2):
        (problem,) = verify_trial(played.path).problems
        assert problem.file == "incidents.db"
        assert "another log than the run had" in problem.what
        end_of_run()  # a later run makes it no better
