"""Which agents there are, how a name leads to one, and what a digest covers."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import textwrap

import pytest

from robo_eval.agents import agent_names, load_policy, make_agent
from robo_eval.agents.registry import agent, policy_digest
from robo_eval.core import sources
from robo_eval.core.errors import InputError, UnknownNameError
from robo_eval.core.policy import Policy


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty current folder whose modules are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(path, text):
    path.write_text(textwrap.dedent(text), encoding="utf-8")


OWN = """
class Own:
    name = "own"
    digest = "0" * 64

    def __init__(self, action=0):
        self.action = action

    def reset(self, *, seed=None):
        pass

    def act(self, observation):
        return self.action
"""


def test_the_baseline_agents_are_found():
    assert {
        *("random", "nothing", "balancer", "lookahead", "adaptive", "informed"),
        *("pick-place", "drawer", "arm-random", "arm-still"),
    } == set(agent_names())


@pytest.mark.parametrize("name", agent_names())
def test_every_agent_is_a_policy_under_its_name(name):
    made = make_agent(name)
    assert isinstance(made, Policy)
    assert made.name == name
    assert len(made.digest) == 64


def test_unknown_agent_names_the_nearest():
    with pytest.raises(UnknownNameError, match="unknown agent 'balanser'; did you mean 'balancer'"):
        make_agent("balanser")


def test_unknown_keyword_names_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'memory'"):
        make_agent("adaptive", memmory="trial")
    with pytest.raises(UnknownNameError, match="unknown keyword of agent 'random' 'gain'"):
        make_agent("random", gain=1)


@pytest.mark.parametrize(
    ("name", "keywords", "message"),
    [
        ("adaptive", {"memory": "trail"}, "did you mean 'trial'"),
        ("balancer", {"push_weight": 0.0}, "push_weight must be a number from 1e-09"),
        ("balancer", {"lean_weight": float("nan")}, "lean_weight must be a number"),
        ("balancer", {"dead_band": "wide"}, "dead_band must be a number from 0 to 1000, given 'wi"),
        ("lookahead", {"horizon_s": -1}, "horizon_s must be a number"),
        ("lookahead", {"step_m": True}, "step_m must be a number"),
    ],
)
def test_unusable_values_are_refused(name, keywords, message):
    with pytest.raises(InputError, match=message):
        make_agent(name, **keywords)


def test_a_name_cannot_be_taken_twice():
    with pytest.raises(InputError, match="'balancer' is registered twice"):
        agent("balancer")(type("Other", (), {}))


def test_digest_tells_parameters_apart_and_counts_defaults():
    plain = make_agent("balancer").digest
    assert make_agent("balancer", lean_weight=1000.0).digest == plain
    assert make_agent("balancer", lean_weight=999.0).digest != plain
    assert len({make_agent(name).digest for name in agent_names()}) == len(agent_names())


def test_digest_covers_the_modules_an_agent_is_built_from(monkeypatch):
    cls = type(make_agent("lookahead"))
    before = policy_digest(cls, {})
    within = ("robo_eval.agents", "robo_eval_sim.tasks")
    closure = set(sources.sources(cls.__module__, within, but="robo_eval.agents.registry"))
    assert {"robo_eval.agents.cartpole3d.balancer", "robo_eval.agents.cartpole3d.model"} <= closure
    assert "robo_eval_sim.tasks.cartpole3d.layout" in closure
    assert "robo_eval.agents.cartpole3d.adaptive" not in closure
    read = sources.source_of
    for module in sorted(closure):
        monkeypatch.setattr(
            sources, "source_of", lambda m, c=module: read(m) + ("\nx = 1\n" if m == c else "")
        )
        assert policy_digest(cls, {}) != before, module


def test_digest_is_the_same_in_another_process():
    code = "from robo_eval.agents import make_agent; print(make_agent('lookahead').digest)"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == make_agent("lookahead").digest


def test_agents_need_no_simulator_and_no_scipy():
    # Python itself may have loaded the few lines that tell Gymnasium about the environments.
    code = (
        "import sys; before = set(sys.modules)\n"
        "from robo_eval.agents import agent_names, make_agent\n"
        "[make_agent(n) for n in agent_names()]\n"
        "heavy = 'pybullet', 'robo_eval_sim', 'gymnasium', 'scipy', 'pandas', 'pydantic'\n"
        "new = {m for m in set(sys.modules) - before if m.split('.')[0] in heavy}\n"
        "light = 'layout', 'chain', 'arm', 'tasks', 'cartpole3d', 'pick_place', 'drawer'\n"
        "print(sorted(name for name in new if name.rpartition('.')[2] not in light))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip() == "[]"


def test_a_factory_in_the_current_folder_takes_the_plans_name(folder):
    write(folder / "lab_agents.py", OWN)
    made = load_policy("ours", "lab_agents:Own", {"action": 3})
    assert (made.name, made.act(None)) == ("ours", 3)


def test_without_a_factory_the_name_is_a_registered_one():
    assert load_policy("nothing").name == "nothing"
    assert (
        load_policy("balancer", None, {"dead_band": 2.0}).digest != load_policy("balancer").digest
    )


def test_a_class_of_the_package_can_appear_under_another_name():
    made = load_policy(
        "keeps", "robo_eval.agents.cartpole3d.adaptive:Adaptive", {"memory": "trial"}
    )
    assert made.name == "keeps"
    assert make_agent("adaptive").name == "adaptive"


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        ("no_such_package.agents:Own", "there is no module 'no_such_package'"),
        ("robo_eval.no_such:Own", "there is no module 'robo_eval.no_such'"),
        ("lab_agents:Oven", "unknown attribute of lab_agents.*did you mean 'Own'"),
        ("lab_agents", "write it as package.module:callable"),
        ("lab_agents:", "write it as package.module:callable"),
        ("lab agents:Own", "write it as package.module:callable"),
        ("lab_agents:NUMBER", "is a int, not a callable"),
        ("lab_agents:make_list", "returned a list without act, reset, digest"),
        ("lab_agents:Sealed", "name cannot be set"),
        ("lab_agents:Nameless", "digest must be a text, given None"),
        ("lacking:Own", "needs a module that is missing: No module named 'no_such_library'"),
        ("broken:Own", "importing it fails: ZeroDivisionError"),
    ],
)
def test_a_factory_that_leads_nowhere_is_refused_in_one_line(folder, factory, message):
    sealed = """
    NUMBER = 4
    make_list = list

    class Sealed(Own):
        name = property(lambda self: "sealed")

    class Nameless(Own):
        digest = None
    """
    write(folder / "lab_agents.py", OWN + textwrap.dedent(sealed))
    write(folder / "lacking.py", "import no_such_library\n")
    write(folder / "broken.py", "1 / 0\n")
    with pytest.raises(InputError, match=message) as caught:
        load_policy("ours", factory)
    assert "\n" not in str(caught.value)
    assert "ours" in str(caught.value)


def test_keywords_a_factory_does_not_take_are_refused(folder):
    write(folder / "lab_agents.py", OWN)
    with pytest.raises(InputError, match=r"cannot be called with kwargs \['speed'\].*'speed'"):
        load_policy("ours", "lab_agents:Own", {"speed": 1})


def test_a_wrapped_function_is_a_policy(folder):
    weights = folder / "weights.bin"
    weights.write_bytes(b"abc")
    write(
        folder / "lab_agents.py",
        """
        from pathlib import Path
        from robo_eval.agents.foreign import wrap

        def network(path):
            return wrap(lambda observation: (2, None), digest_of=Path(path))
        """,
    )
    made = load_policy("net", "lab_agents:network", {"path": str(weights)})
    assert isinstance(made, Policy)
    assert made.digest == hashlib.sha256(b"abc").hexdigest()
    made.reset(seed=1)
    assert made.act([0.0]) == 2
    with pytest.raises(InputError, match=r"nothing\.bin' cannot be read"):
        load_policy("net", "lab_agents:network", {"path": "nothing.bin"})
