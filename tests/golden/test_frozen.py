"""What the product says of trials that do not change: every number is as it was, to 1e-12.

Inputs are tables, JSONL and programs, written anew through the public store, so that the forms a
log is kept in may change. `python tests/golden/test_frozen.py [NAME...]` freezes the documents
anew; a commit that does so says which numbers moved and why.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import plotly.graph_objects
import pytest
from typer.testing import CliRunner

from robo_eval.cli.app import app
from robo_eval.core.episode import Episode
from robo_eval.core.kinds import Arm, EndReason, FaultBy, Side
from robo_eval.core.plan import parse_plan
from robo_eval.log.directory import TrialDirectory
from robo_eval.log.store import EpisodeStore

HERE = Path(__file__).parent / "frozen"
EXAMPLES = Path(__file__).parents[2] / "examples"
WITHIN = 1e-12
KINDS = {"side": Side, "arm": Arm, "end_reason": EndReason, "fault_by": FaultBy}

# Versions, digests of text and times of files: not numbers about a trial.
LOOSE = {
    "chain_head", "computed", "config_digest", "created", "digest", "directory", "engine",
    "folder", "head", "head_sha256", "library", "log", "made_at", "numerics", "out", "page",
    "path", "plan_digest", "python", "robo_eval", "settings", "sha256", "software", "study",
    "trial", "versions",
}  # fmt: skip

VERBS: dict[str, tuple[str, ...]] = {
    "metrics": ("metrics", "{}", "--json"),
    "assess": ("assess", "{}", "--json"),
    "assess_general": ("assess", "{}", "--profile", "general", "--json"),
    "acc": ("acc", "{}", "--json"),
    "compare": ("compare", "{}", "--json"),
    "verify": ("verify", "{}", "--json"),
    "report": ("report", "{}", "--json"),
}
QUICK = ("twin", "contexts", "calibration_chosen", "matched")
"""Trials that `make test` computes; the others wait for `make test-long`."""


def program(path: Path) -> Any:
    """A program of the examples, or a file beside this one, as a module."""
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


INVENTED = program(Path(__file__).parent / "invented.py")


# Inputs ------------------------------------------------------------------------------------------


def written(source: Path, folder: Path) -> None:
    """A trial of `plan.yaml`, `episodes.jsonl` and evidence."""
    plan = (source / "plan.yaml").read_text(encoding="utf-8")
    trial = TrialDirectory.create(folder, parse_plan(plan, source="plan.yaml"))
    rows = []
    with gzip.open(source / "episodes.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            values = json.loads(line)
            for name, kind in KINDS.items():
                if values.get(name) is not None:
                    values[name] = kind(values[name])
            rows.append(Episode(plan_digest=trial.plan_digest, **values))
    with EpisodeStore(folder, durable=False) as store:
        store.append(rows)
        trial.write_manifest(status="complete", store=store)
    for file in source.iterdir():
        if file.name not in {"plan.yaml", "episodes.jsonl.gz"}:
            shutil.copy(file, folder)


def archetype(number: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        made = program(EXAMPLES / "archetypes.py")
        made.make(made.ARCHETYPES[number], folder)

    return make


def other_lab(folder: Path) -> None:
    lab = EXAMPLES / "other_lab"
    said("import", "csv", lab / "episodes.csv", "--map", lab / "columns.yaml", "--out", folder)


def lab_bags(folder: Path) -> None:
    bags = folder.with_name("bags")
    make_bags = EXAMPLES / "lab_bags" / "make_bags.py"
    subprocess.run([sys.executable, make_bags, bags], check=True, capture_output=True)
    topics = EXAMPLES / "lab_bags" / "topics.yaml"
    said("import", "bag", bags, "--map", topics, "--out", folder)


TRIALS: dict[str, Callable[[Path], None]] = {
    **{name: lambda folder, name=name: INVENTED.make(name, folder) for name in INVENTED.INVENTED},  # type: ignore[misc]
    "matched": lambda folder: written(HERE / "inputs" / "matched", folder),
    "first": lambda folder: written(HERE / "inputs" / "first", folder),
    "agents": lambda folder: written(HERE / "inputs" / "agents", folder),
    **{f"archetype_{number}": archetype(number) for number in range(4)},
    "other_lab": other_lab,
    "lab_bags": lab_bags,
}


def study(folder: Path) -> None:
    """The study of `examples/suites/small.yaml`, as it was measured once.

    What was found is kept in the order of the pieces of work, whose digests change with the source
    of the simulator.
    """
    from robo_eval.study.results import NAME, Results
    from robo_eval.study.run import Study

    folder.mkdir()
    shutil.copy(EXAMPLES / "suites" / "small.yaml", folder / "suite.yaml")
    made = Study.open(folder)
    with gzip.open(HERE / "inputs" / "study.jsonl.gz", "rt", encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    first = made._first_jobs()
    made._choose_experts(value for _, value in found[: len(first)])
    with Results(folder / NAME) as results:
        for job, (label, value) in zip([*first, *made._jobs()], found, strict=True):
            assert job.label == label
            results.put(job.digest, label, value)


# Documents ---------------------------------------------------------------------------------------


def said(*words: object) -> dict[str, Any]:
    """What a command prints as JSON, and its exit code."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code in {0, 1, 2}, (words, done.output)
    text = done.stdout if done.stdout.startswith(("{", "[")) else "null"
    return {"exit_code": done.exit_code, "said": json.loads(text)}


def documents(trial: str, folder: Path) -> Iterator[tuple[str, Any]]:
    TRIALS[trial](folder)
    for name, words in VERBS.items():
        found = said(*(word.format(folder) for word in words))
        if name == "report":
            path = folder / "report" / "metrics.json"
            found["said"] = json.loads(path.read_text(encoding="utf-8"))
        yield name, bare(found)


def ranking(folder: Path) -> Any:
    study(folder / "study")
    TRIALS["agents"](folder / "agents")
    return bare(said("aiq", "rank", folder / "study", folder / "agents", "--json"))


def bare(document: Any) -> Any:
    """A document without what may differ from machine to machine."""
    if isinstance(document, Mapping):
        if document.get("source") == "manifest.json":  # versions and the machine, in words
            return {"id": document["id"]}
        return {key: bare(part) for key, part in document.items() if key not in LOOSE}
    if isinstance(document, list):
        return [bare(part) for part in document]
    return document


def differences(was: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two documents differ, by path."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for key in sorted({*was, *now}):
            if key not in now:
                yield f"{path}.{key}: gone"
            elif key not in was:
                yield f"{path}.{key}: new"
            else:
                yield from differences(was[key], now[key], f"{path}.{key}")
    elif isinstance(was, list) and isinstance(now, list):
        if len(was) != len(now):
            yield f"{path}: {len(was)} entries were, {len(now)} are"
        for number, (one, other) in enumerate(zip(was, now, strict=False)):
            yield from differences(one, other, f"{path}[{number}]")
    elif _is_number(was) and _is_number(now):
        if not math.isclose(was, now, rel_tol=WITHIN, abs_tol=WITHIN):
            yield f"{path}: {was!r} was, {now!r} is"
    elif _text(was) != _text(now):
        yield f"{path}: {was!r:.120} was, {now!r:.120} is"


def _text(value: Any) -> Any:
    """A text without revisions and digests, which name who made it and not what was found."""
    return (
        re.sub(r"\b(?:[\d.]+\+g)?[0-9a-f]{12,64}\b", "#", value)
        if isinstance(value, str)
        else value
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def frozen(name: str) -> Any:
    with gzip.open(HERE / "said" / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        return json.load(file)


@cache
def levels() -> Any:
    return bare(said("levels", "--json"))


@pytest.mark.parametrize(
    "trial",
    [
        pytest.param(name, marks=[] if name in QUICK else [pytest.mark.slow])
        for name in TRIALS
        if name != "agents"
    ],
)
def test_every_number_is_as_it_was(trial: str, tmp_path: Path) -> None:
    was = frozen(trial)
    found = []
    for name, document in documents(trial, tmp_path / "trial"):
        found += [f"{name}{one}" for one in differences(bare(was[name]), document)]
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:60])
    assert pictures(tmp_path / "trial" / "report" / "index.html") >= {"heat_map", "lengths"}


def pictures(page: Path) -> set[str]:
    """Names of the pictures of a page, all of which plotly knows: its own classes refuse others."""
    text = page.read_text(encoding="utf-8").split('id="figures">')[1].split("</script>")[0]
    found = json.loads(text)
    for forms in found.values():
        for form in forms.values():
            plotly.graph_objects.Figure(form)
    return set(found)


def test_levels_are_as_they_were() -> None:
    assert not list(differences(frozen("levels"), levels()))


@pytest.mark.slow
def test_a_ranking_is_as_it_was(tmp_path: Path) -> None:
    found = list(differences(frozen("ranking"), ranking(tmp_path)))
    assert not found, "\n".join(found[:60])


def test_a_changed_number_is_found() -> None:
    was = {"a": [{"value": 0.25, "low": None}], "b": "x"}
    assert not list(differences(was, {"a": [{"value": 0.25 + 1e-14, "low": None}], "b": "x"}))
    now = {"a": [{"value": 0.25 + 1e-9, "low": 0.0}], "c": "x"}
    assert len(list(differences(was, now))) == 4


# Freezing ----------------------------------------------------------------------------------------


def freeze(name: str, document: Any) -> None:
    path = HERE / "said" / f"{name}.json.gz"
    path.parent.mkdir(exist_ok=True)
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), mtime=0))
    sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")


def main() -> None:
    """Freeze what is named, or everything."""
    wanted = sys.argv[1:] or [*TRIALS, "levels", "ranking"]
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            if name == "levels":
                freeze(name, levels())
            elif name == "ranking":
                freeze(name, ranking(Path(folder)))
            elif name != "agents":
                freeze(name, dict(documents(name, Path(folder) / "trial")))


if __name__ == "__main__":
    main()
