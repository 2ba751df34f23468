"""Figures of a sweep: one module for each, a dataset in, a matplotlib Figure out."""

__all__ = ["save"]


def __getattr__(name):
    if name == "save":
        from bqlib.figures.style import (
            save,  # loads matplotlib, 0.4 s, which the choice does without
        )

        return save
    raise AttributeError(f"module 'bqlib.figures' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *__all__])
