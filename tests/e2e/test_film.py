"""An episode can be watched by anyone who can open a GIF."""

import json


def test_film_shows_the_episode_at_its_own_speed(cli, tmp_path):
    from PIL import Image

    result = cli("film", "--agent", "nothing", "--seed", "3", "--out", "fall.gif", "--json")
    assert result.code == 0, result.err
    ticks = json.loads(result.out)["ticks"]
    with Image.open(tmp_path / "fall.gif") as picture:
        assert picture.size == (480, 360)
        # The first picture, one every second tick, and the last.
        assert picture.n_frames >= ticks // 2
        assert picture.info["duration"] == 40
        first = picture.convert("RGB").tobytes()
        picture.seek(picture.n_frames - 1)
        assert picture.convert("RGB").tobytes() != first
    assert [path.name for path in tmp_path.iterdir()] == ["fall.gif"]
    kept = (tmp_path / "fall.gif").read_bytes()
    again = cli("film", "--agent", "nothing", "--seed", "4", "--out", "fall.gif")
    assert again.code == 2
    assert "--force" in again.err
    assert (tmp_path / "fall.gif").read_bytes() == kept


def test_film_of_an_agent_of_one_s_own_says_how_it_ended(quick_cli, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from robo_eval.agents import make_agent\ndef make(): return make_agent('nothing')\n"
    )
    told = quick_cli("film", "--agent", "mine", "--factory", "mine:make", "--out", "mine.gif")
    assert told.code == 0, told.err
    assert "mine at level 0" in told.out
    assert told.out.endswith(" ticks, failed\n")


def test_film_refuses_what_it_cannot_write(quick_cli, tmp_path):
    for arguments in (
        ("--out", "fall.mp4"),
        ("--out", "nowhere/fall.gif"),
        ("--out", "fall.gif", "--level", "99"),
        ("--out", "fall.gif", "--agent", "balancr"),
    ):
        result = quick_cli("film", *arguments)
        assert result.code == 2, result.out
        assert len(result.err.strip().splitlines()) == 1, result.err
    assert list(tmp_path.iterdir()) == []
