"""Figures of a sweep: one module for each, a dataset in, a matplotlib Figure out."""

from bqlib.figures.style import save

__all__ = ["save"]
