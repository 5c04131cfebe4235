"""Every public function that takes arrays honours what says "missing", or refuses it."""

import importlib
import inspect
import pkgutil
import warnings

import numpy as np
import pandas as pd
import pytest

from robo_eval.stats.arrays import floats, integers
from robo_eval.stats.joint import sim_real_intervals

RATES = [0.1, 0.4, 0.6, 0.8]
WINS = [1.0, 0.0, 1.0, 0.0, 1.0]
COUNTS, TRIALS = [3.0, 5.0, 2.0], [10.0, 10.0, 10.0]
TABLE = [[1.0, 2.0, 3.0], [2.0, 1.0, 4.0], [3.0, 4.0, 1.0]]
APART = [[0.0, 1.0, 2.0, 3.0], [1.0, 0.0, 1.0, 2.0], [2.0, 1.0, 0.0, 1.0], [3.0, 2.0, 1.0, 0.0]]
BETTER = [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
TIMES = np.arange(12) * 0.1
PATH = np.sin(TIMES)[:, None].tolist()
TIMES = TIMES.tolist()
RESPONSES = [[1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]]

CALLS = {
    "stats.agreement.mmrv": (RATES, RATES),
    "stats.agreement.pearson": (RATES, [0.2, 0.3, 0.7, 0.9]),
    "stats.agreement.ranking_agreement": ([WINS] * 4, [WINS] * 4, {"paired": False}),
    "stats.agreement.cohens_kappa": ([[5.0, 1.0], [2.0, 7.0]],),
    "stats.agreement.rating_table": (WINS, WINS),
    "stats.bounded.bounded_mean_interval": (RATES,),
    "stats.bounded.bounded_mean_intervals": ([RATES, RATES],),
    "stats.clustered.new_cluster_rate": (COUNTS, TRIALS),
    "stats.clustered.new_cluster_difference": (COUNTS, COUNTS, TRIALS),
    "stats.clustered.resampled_ratios": (COUNTS, TRIALS),
    "stats.joint.joint_intervals": (TABLE, {"statistics": [lambda means: means[0]]}),
    "stats.joint.sim_real_intervals": (WINS, WINS),
    "stats.multiple.holm": (RATES,),
    "stats.multiple.letters": (BETTER,),
    "stats.multiple.rank_ranges": (BETTER,),
    "stats.clustered_pairs.clustered_difference": ([1.0, -1.0, 0.0], [2.0, 2.0, 2.0]),
    "stats.clustered_pairs.clustered_p_values": ([[1.0, -1.0, 0.0]], [2, 2, 2]),
    "stats.paired.paired_table": (WINS, WINS),
    "stats.paired.discordant_counts": (COUNTS, COUNTS, TRIALS),
    "stats.paired.mcnemar_p": (COUNTS, TRIALS),
    "stats.paired.bonett_price_interval": (COUNTS, COUNTS, TRIALS),
    "stats.prediction_powered.prediction_powered_rate": (WINS, WINS, WINS),
    "stats.proportions.wilson_interval": (COUNTS, TRIALS),
    "stats.proportions.clopper_pearson_interval": (COUNTS, TRIALS),
    "stats.proportions.clustered_interval": (RATES, {"n": 40}),
    "stats.rates.burst_interval": (TRIALS, {"exposure": 10.0}),
    "stats.rates.garwood_interval": (COUNTS, TRIALS),
    "stats.rates.rate_ratio_interval": (COUNTS, TRIALS, COUNTS, TRIALS),
    "stats.resampling.cells_mean_interval": ([RATES, RATES],),
    "stats.resampling.mean_interval": (RATES,),
    "stats.resampling.mean_intervals": ([RATES, RATES],),
    "stats.resampling.paired_difference_interval": (RATES, WINS[:4]),
    "stats.resampling.stratified_mean_interval": ([RATES, RATES], {"over": "these"}),
    "stats.sequential.robbins_interval": (COUNTS, TRIALS),
    "stats.sequential.confidence_sequence": (WINS,),
    "stats.sequential.rate_e_value": (COUNTS, TRIALS, {"rate": 0.5}),
    "stats.sequential.paired_e_value": (COUNTS, TRIALS),
    "stats.sequential.paired_e_process": (WINS, WINS),
    "stats.sequential.anytime_p": (RATES,),
    "stats.sign_flip.sign_flip_p": (COUNTS,),
    "stats.unpaired.newcombe_interval": (COUNTS, TRIALS, COUNTS, TRIALS),
    "analysis.acc.agent.analyse": (RESPONSES, [0.0, 1.0, 2.0, 3.0]),
    "analysis.acc.group.population": (RESPONSES, [0.0, 1.0, 2.0, 3.0]),
    "analysis.acc.shapes.attainable_maximum": (RATES,),
    "analysis.acc.transforms.closed_form": (RATES,),
    "analysis.acc.transforms.opponents": ([[0.5, 1.0], [0.0, 0.5]],),
    "analysis.acc.transforms.against_reference": (TABLE, {"reference": 0}),
    "analysis.acc.transforms.ranks": (TABLE,),
    "analysis.acc.transforms.log_odds": (RESPONSES,),
    "analysis.aiq.complexity.relative": (RATES,),
    "analysis.aiq.dissimilarity.triangle_violations": (APART,),
    "analysis.aiq.volume.determinant_volume": ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],),
    "analysis.aiq.volume.hull_volume": ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],),
    "analysis.aiq.entropy.observation_entropy": (TABLE,),
    "analysis.coherence.generalised_mean": (RATES, [1.0, 2.0]),
    "analysis.coherence.auc": (RATES,),
    "analysis.coherence.coherence": (RATES,),
    "analysis.coherence.auc_interval": ([RATES, RATES],),
    "metrics.control_measures.tracking_rmse": (TIMES, PATH, TIMES, PATH),
    "metrics.control_measures.jerk_rms": (TIMES, PATH),
    "metrics.control_measures.peak_force": (RATES,),
    "metrics.control_measures.settling_time": (TIMES, PATH, TIMES, PATH, {"band": 0.1}),
    "gates.axes.improvement.kappa_estimate": (RATES, [1.0, 2.0, 3.0, 4.0]),
}
ELSEWHERE = {
    "analysis.acc.curve.make_scale",
    "stats.stopping.stop_decision", "stats.sequential.log_rate_e",
    "analysis.acc.resample.bootstrap",
    "analysis.acc.resample.bootstrap_seeds", "analysis.acc.transforms.reference_distribution",
    "analysis.acc.transforms.transform", "analysis.aiq.complexity.half_samples",
    "analysis.aiq.complexity.mccp", "analysis.aiq.dissimilarity.dissimilarity",
    "analysis.aiq.dissimilarity.dissimilarities", "analysis.aiq.entropy.image_entropy",
    "analysis.aiq.space.space", "analysis.aiq.quotient.quotient", "analysis.aiq.quotient.around",
    "analysis.aiq.quotient.quotient_interval", "analysis.aiq.quotient.quotients",
    "analysis.aiq.tree.cluster_tree",
}  # fmt: skip
"""Functions that need more than arrays; they go through the same door."""


def arrays_of(given):
    return [one for one in given if not isinstance(one, dict)]


CASES = [
    pytest.param(name, place, id=f"{name}-{place}")
    for name, given in CALLS.items()
    for place in range(len(arrays_of(given)))
]


def call(name, place=None, array=None):
    given = CALLS[name]
    arrays = arrays_of(given)
    if place is not None:
        arrays[place] = array
    module, _, function = f"robo_eval.{name}".rpartition(".")
    keywords = given[-1] if isinstance(given[-1], dict) else {}
    return getattr(importlib.import_module(module), function)(*arrays, **keywords)


def answer(name, place, array):
    """What a call gives, or that it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            return repr(call(name, place, array))
        except ValueError:
            return "refused"


def last_replaced(array, value):
    """The array with another last number, as nested lists."""
    if isinstance(array, list):
        return [*array[:-1], last_replaced(array[-1], value)]
    return value


def masked(array, *, below):
    """The array with its last number masked, a list of masked arrays where rows are ragged."""
    last = last_replaced(array, below)
    values = np.ma.masked_array(last, mask=np.zeros(np.shape(last), dtype=bool))
    values[(-1,) * values.ndim] = np.ma.masked
    values.data[(-1,) * values.ndim] = below
    return values


def test_the_table_of_calls_is_complete():
    found = set()
    folders = ["stats", "analysis.acc", "analysis.aiq"]
    names = [
        f"{folder}.{module.name}"
        for folder in folders
        for module in pkgutil.iter_modules(importlib.import_module(f"robo_eval.{folder}").__path__)
        if not module.name.startswith("_")
    ]
    for name in [*names, "analysis.coherence", "metrics.control_measures"]:
        module = importlib.import_module(f"robo_eval.{name}")
        found |= {
            f"{name}.{function.__name__}"
            for function in vars(module).values()
            if inspect.isfunction(function)
            and function.__module__ == module.__name__
            and not function.__name__.startswith("_")
            and any(
                "ArrayLike" in str(p.annotation)
                for p in inspect.signature(function).parameters.values()
            )
        }
    own = {f"stats.arrays.{name}" for name in ("floats", "integers", "unmasked")}
    assert found - own - set(CALLS) - ELSEWHERE == set()


@pytest.mark.parametrize("name", CALLS)
def test_the_calls_are_sound(name):
    call(name)


@pytest.mark.parametrize(("name", "place"), CASES)
def test_what_is_missing_is_missing_however_it_is_said(name, place):
    array = arrays_of(CALLS[name])[place]
    expected = answer(name, place, last_replaced(array, float("nan")))
    for below in (1.0, 0.0):
        assert answer(name, place, masked(array, below=below)) == expected
        assert answer(name, place, list(masked(array, below=below))) == expected
    for nothing in (None, pd.NA, pd.NaT):
        assert answer(name, place, last_replaced(array, nothing)) == expected


@pytest.mark.parametrize("other", ["1", b"1", 1j, {}, "2026-03-01"], ids=repr)
@pytest.mark.parametrize(("name", "place"), CASES)
def test_what_is_no_number_is_refused(name, place, other):
    array = last_replaced(arrays_of(CALLS[name])[place], other)
    assert answer(name, place, array) == "refused"
    if not isinstance(other, dict):
        assert answer(name, place, np.array(array, dtype=object)) == "refused"


@pytest.mark.parametrize(("name", "place"), CASES)
def test_ragged_rows_and_dates_are_refused(name, place):
    assert answer(name, place, [[1.0, 2.0], [[1.0]]]) == "refused"
    assert answer(name, place, np.array(["2026-03-01"] * 3, dtype="datetime64[s]")) == "refused"


@pytest.mark.parametrize(
    "values",
    [
        [1, None],
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1.0, None]),
        pd.Series([True, None], dtype="boolean"),
        np.ma.masked_array([1, 7], mask=[False, True]),
        [1.0, np.ma.masked],
        np.array([1, pd.NaT], dtype=object),
    ],
)
def test_the_door(values):
    np.testing.assert_array_equal(floats("x", values), [1.0, np.nan])
    with pytest.raises(ValueError, match="x must hold whole numbers of 64 bits, given nan"):
        integers("x", values)


@pytest.mark.parametrize("nothing", [None, pd.NA, float("nan"), np.ma.masked])
def test_a_cluster_without_a_name_is_refused(nothing):
    names = np.ma.masked_array([1, 1, 2, 2, 3], mask=[0, 0, 0, 0, 1])
    clusters = names if nothing is np.ma.masked else [1, 1, 2, 2, nothing]
    with pytest.raises(ValueError, match="one is missing"):
        sim_real_intervals(WINS, WINS, clusters=clusters)


def test_the_door_keeps_shapes_and_masks_of_rows():
    rows = [np.ma.masked_array([1, 2], mask=[True, False]), [3, 4]]
    np.testing.assert_array_equal(floats("x", rows), [[np.nan, 2.0], [3.0, 4.0]])
    assert floats("x", np.ma.masked).shape == ()
    assert np.isnan(floats("x", np.ma.masked))
    assert integers("x", [2**62 + 1]).tolist() == [2**62 + 1]
