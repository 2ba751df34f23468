"""Hayakawa, Oberhauser and Lyons, "Positively weighted kernel quadrature via subsampling", 2022."""

from bqlib.claims.hayakawa2022 import expectations, experiments
from bqlib.claims.paper import Paper

PAPER = Paper(
    key="hayakawa2022",
    citation="Hayakawa, Oberhauser and Lyons (2022)",
    claims=experiments.CHECKS,
    expectations=expectations.CHECKS,
    table_1=lambda evidence: [],
    config="config/hayakawa.yaml",
)
