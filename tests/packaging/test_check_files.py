"""The check of tracked files finds what it says it finds."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check_files() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_files", REPOSITORY / ".ci/check_files.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Written in two halves so that this file does not hold what it is looking for.
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.toml", "key = ", "not valid TOML"),
        ("a.yaml", "a: [1, 2", "not valid YAML"),
        ("a.json", "{'a': 1}", "not valid JSON"),
        ("a.urdf", "<robot><link></robot>", "not valid URDF"),
        ("a.txt", "x\n-----BEGIN " + "RSA PRIVATE KEY-----", "a.txt:2: looks like a secret"),
        ("a.py", "key = 'AKIA" + "ABCDEFGHIJKLMNOP'", "cloud access key"),
        ("a.md", "https://me:" + "hunter2@example.org/x", "password in an address"),
        ("a.md", "<" * 7 + " HEAD\n", "merge conflict"),
        ("a.bin", "\0" * 1_000_001, "more than 1000000"),
    ],
)
def test_a_bad_file_is_named(
    check_files: ModuleType, tmp_path: Path, name: str, text: str, said: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    (problem,) = check_files.problems_of(path)
    assert said in problem
    assert str(path) in problem


def test_good_files_pass(check_files: ModuleType, tmp_path: Path) -> None:
    good = {
        "a.toml": "key = 1",
        "a.yaml": "--- !tag\na: 1\n---\nb: 2",
        "a.xml": "<a/>",
        "a.md": "https://example.org:8080/x and user@example.org",
        "a.png": "\x89PNG",
    }
    for name, text in good.items():
        (tmp_path / name).write_text(text)
        assert list(check_files.problems_of(tmp_path / name)) == []


def test_a_task_is_named_in_its_own_folder_alone(
    check_files: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = ("sim/robo_eval_sim/tasks/pick_place/spec.py", "robo_eval/agents/pick_place/expert.py")
    names_it = "TASK = 'RoboEval/PickPlace-v0'\n"
    for name in (*own, "docs/pick.py", "robo_eval/report/page.py"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(names_it)
    assert [list(check_files.problems_of(Path(name))) for name in (*own, "docs/pick.py")] == [
        []
    ] * 3
    (problem,) = check_files.problems_of(Path("robo_eval/report/page.py"))
    assert "page.py:1: names the task PickPlace" in problem
