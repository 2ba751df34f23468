"""Hayakawa, Oberhauser and Lyons, "Positively weighted kernel quadrature via subsampling", 2022."""

from bqlib.claims.hayakawa2022 import expectations, experiments
from bqlib.claims.paper import Paper

PAPER = Paper(
    key="hayakawa2022",
    citation="Hayakawa, Oberhauser and Lyons (2022)",
    reference="Satoshi Hayakawa, Harald Oberhauser and Terry Lyons, Positively Weighted Kernel "
    "Quadrature via Subsampling, NeurIPS 2022",
    findings=("better_than_draws", "better_weights_help"),
    errata={},
    claims=experiments.CHECKS,
    expectations=expectations.CHECKS,
    table_1=lambda evidence: [],
    config="config/hayakawa.yaml",
)
