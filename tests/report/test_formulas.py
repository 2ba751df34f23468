import pytest

from bqlib.report.formulas import in_parts


@pytest.mark.parametrize(
    "text, shown",
    [
        ("MMD^2 falls as n^-a", "MMD{2} falls as n{-a}"),
        ("N^-1/2, O(N^3) and N^0.81 [0.71, 0.90]", "N{-1/2}, O(N{3}) and N{0.81} [0.71, 0.90]"),
        ("N^-1 (log N)^d", "N{-1} (log N){d}"),
        ("eps^2 = sum_m k(x, x_m) / sqrt(N)", "ε{2} = Σ<m> k(x, x<m>) / √(N)"),
        ("A - c n^b has b = 0.5", "A - c n{b} has b = 0.5"),
        (
            "herding_bq, block_sbq_5, power_law, r_kept",
            "herding_bq, block_sbq_5, power_law, r_kept",
        ),
        ("2^(n + 1)", "2{(n + 1)}"),
        ("a reps^ of ^ alone, steps and N^word", "a reps^ of ^ alone, steps and N^word"),
        ("", ""),
    ],
)
def test_letters_are_raised_and_lowered_and_names_are_left(text, shown):
    marks = {"": "{}", "up": "{{{}}}", "down": "<{}>"}
    assert "".join(marks[kind].format(words) for kind, words in in_parts(text)) == shown
