"""Tests of what is packed into a report's one file."""

from __future__ import annotations

import json

import numpy as np
import pytest

from robo_eval.core.estimate import Estimate
from robo_eval.core.kinds import EndReason
from robo_eval.core.plain import plain
from robo_eval.page.embed import packed, packed_plotly, script_json, static, unpacked


def test_packed_bytes_come_back_and_are_the_same_every_time() -> None:
    data = bytes(range(256)) * 40
    assert unpacked(packed(data)) == data
    assert packed(data) == packed(data)


def test_packed_plotly_is_the_whole_library_with_its_licence() -> None:
    text = unpacked(packed_plotly()).decode()
    assert "Licensed under the MIT license" in text[:400]
    assert len(packed_plotly()) < 2_500_000


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!--", "&lt;", "\u2028"])
def test_script_json_cannot_leave_its_element(text: str) -> None:
    written = str(script_json({"name": text}))
    assert not set("<>&\u2028") & set(written)
    assert json.loads(written) == {"name": text}


def test_plain_knows_neither_nan_nor_numpy_nor_enums() -> None:
    estimate = Estimate.missing(reason="no episodes", unit="ratio")
    value = {
        "nan": float("nan"),
        "infinite": np.float64("inf"),
        "array": np.array([[1.0, np.nan]]),
        "enum": EndReason.FAULT,
        "estimate": estimate,
        "flag": np.bool_(True),
        1: (1, 2),
    }
    assert plain(value) == {
        "nan": None,
        "infinite": None,
        "array": [[1.0, None]],
        "enum": "fault",
        "estimate": estimate.as_dict(),
        "flag": True,
        "1": [1, 2],
    }
    assert type(plain(EndReason.FAULT)) is str


@pytest.mark.parametrize(
    "name",
    ["shared.css", "page.css", "report.css", "index.css", "player.css", "unpack.js", "player.js"],
)
def test_static_files_are_packaged_and_fetch_nothing(name: str) -> None:
    text = str(static(name))
    assert len(text) > 200
    assert "http://" not in text
    assert "https://" not in text
    assert "</" not in text
