"""Networks of a study that lose their nodes: what is tried, what is kept, and what follows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from robo_eval.analysis.aiq import quotient
from robo_eval.core.errors import InputError
from robo_eval.study import handicapping, measure
from robo_eval.study.handicapping import Plan, fits, handicapped, pieces_of
from robo_eval.study.run import Study
from robo_eval.study.suite import parse_suite

PLAN = Plan(layers=2, units=6, steps=4, trainings=2)


@pytest.fixture(scope="module")
def finished(tiny_suite: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("handicapped") / "study"
    suite = tiny_suite | {"dimensions": 1}
    Study(parse_suite(yaml.safe_dump(suite), source="suite"), folder).run()
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "study"))


@pytest.mark.slow
def test_what_is_found_follows_from_networks_of_each_test(folder: Path) -> None:
    study = Study.open(folder)
    found = handicapped(study, PLAN)
    space = study.known().space
    assert [one.layers for one in found.curves] == [1, 2]
    assert [one.nodes.tolist() for one in found.curves] == [[6, 4, 3, 1], [12, 9, 5, 2]]
    for curve in found.curves:
        assert curve.performances.shape == (2, 2, 4)
        np.testing.assert_allclose(curve.means, curve.performances.mean(axis=1))
        for training in range(2):
            for step in range(4):
                own = quotient(space, curve.performances[training, :, step]).aiq
                assert curve.aiqs[training, step] == pytest.approx(own)
        assert curve.fits_of(curve.means) == fits(curve.nodes, curve.means.mean(axis=0))
    # By hand: the whole network is the learner of the study with other layers.
    curve = found.curves[1]
    learner = study.suite.learner.model_copy(update={"hidden": (6, 6)})
    for place, test in enumerate(study.tests):
        own = measure.lesson(test.build(), learner.examples, seed=study.suite.seed)
        for number in range(2):
            assert curve.performances[number, place, 0] == pytest.approx(
                measure.alone(own, learner, number, seed=study.suite.seed)
            )


@pytest.mark.slow
def test_nothing_is_done_twice_and_more_trainings_cost_only_themselves(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = Study.open(folder)
    done: list[str] = []
    do = handicapping.do

    def told(piece: handicapping.Piece) -> dict[str, Any]:
        done.append(piece.label)
        if len(done) == 3:
            raise KeyboardInterrupt
        return do(piece)

    monkeypatch.setattr(handicapping, "do", told)
    with pytest.raises(KeyboardInterrupt):
        handicapped(study, PLAN)
    first = handicapped(study, PLAN)
    assert len(done) == 3 + 6, "two of eight pieces were kept"
    again = handicapped(study, PLAN)
    more = handicapped(study, Plan(layers=2, units=6, steps=4, trainings=3))
    assert len(done) == 9 + 4
    assert again.as_dict() == first.as_dict()
    np.testing.assert_array_equal(more.curves[0].aiqs[:2], first.curves[0].aiqs)


@pytest.mark.slow
def test_it_does_not_matter_how_many_work(folder: Path) -> None:
    alone = handicapped(Study.open(folder), PLAN).as_dict()
    other = Study.open(folder)
    (folder / "results.db").unlink()
    other.run()
    assert handicapped(other, PLAN, workers=2).as_dict() == alone


def test_each_piece_is_told_of(folder: Path) -> None:
    told: list[tuple[float, float]] = []
    handicapped(
        Study.open(folder), PLAN, progress=lambda count, total, _: told.append((count, total))
    )
    assert told == [(count, 8) for count in range(1, 9)]


def test_digests_tell_pieces_apart(folder: Path) -> None:
    study = Study.open(folder)
    study.prepare()
    plans = [PLAN, Plan(layers=2, units=7, steps=4, trainings=2), Plan(layers=2, units=6, steps=5)]
    digests = [{piece.digest for piece in pieces_of(study, plan)} for plan in plans]
    assert [len(one) for one in digests] == [8, 8, 12]
    assert not digests[0] & digests[1]
    assert not digests[0] & digests[2]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"layers": 0}, "layers is 0"),
        ({"trainings": 0}, "trainings is 0"),
        ({"steps": 3}, "steps is 3 and units 32"),
        ({"units": 8}, "steps is 9 and units 8"),
    ],
)
def test_plans_that_cannot_be_are_refused(values: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Plan(**values)


def test_a_study_that_is_not_finished_is_refused(tiny: dict[str, Any], tmp_path: Path) -> None:
    study = Study(parse_suite(yaml.safe_dump(tiny), source="suite"), tmp_path / "study")
    study.prepare()
    with pytest.raises(InputError, match="pieces of work of the study are missing"):
        handicapped(study, PLAN)
