"""What bqlib knows of a paper whose claims it judges."""

from collections.abc import Callable
from dataclasses import dataclass

from bqlib.claims.evidence import Check


@dataclass(frozen=True)
class Paper:
    """A paper: its claims, and what a faithful reproduction of it must reach.

    Attributes
    ----------
    key : str
        As ``bqlib.analysis.papers.papers_of`` names it, which says what a sweep is of.
    citation : str
        Authors and year.
    reference : str
        Authors, title, where and year.
    findings : tuple of str
        Names of the claims that are its main results.
    errata : dict
        Name of a claim to the section of docs/errata.md that corrects it.
    claims, expectations : tuple of Check
    table_1 : callable
        Rows of its Table 1, from the evidence; an empty list if there are none.
    config : str
        The sweep that repeats it.
    """

    key: str
    citation: str
    reference: str
    findings: tuple[str, ...]
    errata: dict[str, str]
    claims: tuple[Check, ...]
    expectations: tuple[Check, ...]
    table_1: Callable
    config: str
