"""What evaluation tools are known to get wrong: missing verdicts taken for failures, certainty."""

import json


def test_a_missing_verdict_is_none_and_a_skipped_episode_is_void(quick_cli, tmp_path):
    (tmp_path / "lab.csv").write_text(
        "id,verdict,why\n"
        + "".join(f"e{i},success,\n" for i in range(18))
        + "e18,skip,operator pressed skip\n"
        + "e19,none,the operator left\n"
    )
    (tmp_path / "map.yaml").write_text(
        "columns:\n"
        "  episode_id: id\n"
        "  end_reason: {column: verdict, values: {success: success, skip: void, none: lost}}\n"
        "  end_detail: why\n"
        "constants: {task: push, side: real, policy: ours}\n"
    )
    assert quick_cli("import", "csv", "lab.csv", "--map", "map.yaml", "--out", "lab").code == 0
    done = quick_cli("metrics", "lab", "--json")
    assert done.code == 1
    found = json.loads(done.out)
    (policy,) = found["policies"]
    assert policy["coverage"]["missing"] == {"lost": 1, "void": 1}
    # All 18 with a verdict succeeded: neither of the two counts as failure or success.
    assert policy["success"]["value"] == 1.0
    assert policy["success"]["n"] == 18
    (void,) = [number for number in found["numbers"] if number["name"] == "voids"]
    assert (void["case"], void["value"], void["n"]) == ("operator pressed skip", 1.0, 20)


def test_10_of_10_is_not_certain(quick_cli, tmp_path):
    rows = "".join(f"e{i},yes\n" for i in range(10))
    (tmp_path / "lab.csv").write_text("id,ok\n" + rows)
    (tmp_path / "map.yaml").write_text(
        "columns: {episode_id: id, success: {column: ok, values: {'yes': true}}}\n"
        "constants: {task: push, side: real, policy: ours}\n"
    )
    assert quick_cli("import", "csv", "lab.csv", "--map", "map.yaml", "--out", "lab").code == 0
    done = quick_cli("metrics", "lab")
    assert done.code == 0
    assert "1.00 [0.69, 1.00]" in done.out


REPEATED = """
columns: {episode_id: id, policy: policy, success: {column: ok, values: {"1": true, "0": false}}, seed: seed}
constants: {task: push, side: sim}
"""  # noqa: E501


def test_ten_seeds_that_repeat_are_ten_observations(quick_cli, tmp_path):
    lines = [
        f"{policy}{seed}_{i},{policy},{int(seed < won)},{seed}"
        for policy, won in (("base", 5), ("better", 10))
        for seed in range(10)
        for i in range(20)
    ]
    (tmp_path / "lab.csv").write_text("\n".join(["id,policy,ok,seed", *lines]) + "\n")
    (tmp_path / "map.yaml").write_text(REPEATED)
    assert quick_cli("import", "csv", "lab.csv", "--map", "map.yaml", "--out", "lab").code == 0
    found = json.loads(quick_cli("metrics", "lab", "--json").out)
    base = found["policies"][0]
    # Clopper and Pearson's interval of 5 of 10; of 100 of 200 it would be 0.43 to 0.57.
    for success in (base["success_exact"], found["cells"][0]["success_exact"]):
        assert (round(success["low"], 3), round(success["high"], 3)) == (0.187, 0.813)
        assert success["n"] == 200
    assert base["headline"] == "100/200, 95 % 0.19-0.81"
    (pair,) = json.loads(quick_cli("compare", "lab", "--json").out)["sides"][0]["pairs"]
    assert (pair["unit"], pair["n_units"], pair["n_discordant"]) == ("seeds", 10, 5)
    assert pair["p_value"] == 2 / 2**5
    assert pair["verdict"] == "undecided"
