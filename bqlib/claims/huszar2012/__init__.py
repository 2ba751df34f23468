"""Huszar and Duvenaud, "Optimally-weighted herding is Bayesian quadrature", 2012."""

from bqlib.claims.huszar2012 import expectations, experiments, studied, theory
from bqlib.claims.huszar2012.table import table_1
from bqlib.claims.paper import Paper

PAPER = Paper(
    key="huszar2012",
    citation="Huszar and Duvenaud (2012)",
    claims=(*theory.CHECKS, *experiments.CHECKS, *studied.CHECKS),
    expectations=expectations.CHECKS,
    table_1=table_1,
    config="config/paper.yaml",
)
