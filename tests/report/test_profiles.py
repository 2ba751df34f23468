import json

import numpy as np
import pytest
from synthetic_sweep import sweep

from bqlib.report.profiles import in_words, profile_rows, versus_rows
from bqlib.schema import FAILED

N = np.arange(1.0, 101)


@pytest.fixture
def curves():
    """Six seeds of n^-0.75, of 1/n and of what fails, without noise, in two dimensions."""
    seeds = np.ones((6, 1))
    data = sweep({"slow": seeds / N**0.75, "fast": seeds / N, "none": seeds / N})
    data["status"].loc[{"algorithm": "none"}] = FAILED
    return data


def test_rules_have_their_shares_and_wins_the_best_first(curves):
    rows, said = profile_rows(curves)
    assert [row["algorithm"] for row in rows] == ["fast", "slow", "none"]
    fast, slow, none = rows
    # 51 levels from 1 to 0.01: two points reach 0.5, and twenty 0.05;
    assert fast["n/d = 1"] == np.mean(np.geomspace(1, 0.01, 51) >= 0.5)
    assert fast["n/d = 10"] == np.mean(np.geomspace(1, 0.01, 51) >= 0.05)
    assert fast["solved"] == 1 and slow["solved"] == pytest.approx(38 / 51)
    assert none["solved"] == 0 and none["failed"] == 6 and none["problems"] == 1
    ties = 7 / 51  # one point, two down to 2^-0.75, and three at the ninth level
    assert fast["wins"] == pytest.approx((1 - ties + 1) / 2) and fast["losses"] == 0
    assert said == ["Trials that failed, and count as unsolved: 6."]
    words = in_words(rows)[0]
    assert (words["solved"], words["losses"], words["failed"]) == ("100 %", "0 %", 0)


def test_one_rule_has_a_row_for_each_rival(curves):
    rows, said = versus_rows(curves, "fast")
    assert [row["rival"] for row in rows] == ["slow", "none"]
    assert rows[0]["ratio"] == rows[0]["low"] == rows[0]["high"] > 0
    assert (rows[1]["wins"], rows[1]["ratio"]) == (1, 0)
    ratio = f"{rows[0]['ratio']:.2f}"
    words = in_words(rows)
    assert words[0]["ratio"] == f"{ratio} [{ratio}, {ratio}]" and "low" not in words[0]
    assert words[1]["ratio"] == "0 [0, 0]"
    assert said == ["Trials that failed, and count as unsolved: 6."]
    (against, _) = versus_rows(curves, "none")
    assert against[0]["ratio"] == "inf" and in_words(against)[0]["ratio"] == "inf [inf, inf]"
    with pytest.raises(ValueError, match="have no algorithm sbq; they have slow, fast, none"):
        versus_rows(curves, "sbq")


def test_what_is_not_known_is_null_and_a_dash(curves):
    rows, _ = profile_rows(curves.sel(algorithm=["fast"]))
    assert rows[0]["wins"] is None and in_words(rows)[0]["wins"] == "-"
    rows, _ = versus_rows(curves.isel(seed=[0]), "fast")
    assert rows[0]["low"] is None and in_words(rows)[0]["ratio"] == f"{rows[0]['ratio']:.2f}"
    json.dumps(rows, allow_nan=False)
