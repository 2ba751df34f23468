"""Huszar and Duvenaud, "Optimally-weighted herding is Bayesian quadrature", 2012."""

from bqlib.claims.huszar2012 import expectations, experiments, studied, theory
from bqlib.claims.huszar2012.table import table_1
from bqlib.claims.paper import Paper

PAPER = Paper(
    key="huszar2012",
    citation="Huszar and Duvenaud (2012)",
    reference="Ferenc Huszár and David Duvenaud, Optimally-Weighted Herding is Bayesian "
    "Quadrature, UAI 2012",
    findings=("eight_are_worth_twenty", "sbq_is_faster"),
    errata={
        "herding_variance_as_printed": "1. The expected variance of herding",
        "herding_rule_as_printed": "2. The herding criterion",
        "variance_is_mmd2": "3. Proposition 1",
        "bq_is_minimax": "4. BQ is minimax",
        "approximate_submodularity": "5. Proposition 2",
        "greedy_is_near_optimal": "5. Proposition 2",
        "weights_sum_to": "6. Figure 3: the sum of the weights",
        "within_model": "7. Figure 6: the abscissa",
        "drawn_bound": "8. Figure 7: the bound",
        "out_of_model": "9. Figure 8: out of the model",
        "jitter_is_harmless": "10. Jitter",
        "pool_is_drawn_from_the_target": "11. Candidates",
        "herding_rate_bounds": "12. Table 1",
        "form_of_the_rate": "12. Table 1",
        "herding_cost": "12. Table 1",
        "sbq_cost": "12. Table 1",
        "eigenvalues_increase": "13. Words",
        "sbq_minimises_the_reduction": "13. Words",
        "converges_for_measurable": "13. Words",
    },
    claims=(*theory.CHECKS, *experiments.CHECKS, *studied.CHECKS),
    expectations=expectations.CHECKS,
    table_1=table_1,
    config="config/paper.yaml",
)
