"""stein_thinning: rows of its greedy rule with its own standardisation and kernel.

Its preconditioner `med` makes the length-scale the median distance, `sclmed` that over the root of
the logarithm of the number of draws, 1,000 at most.
Run: with_stein_thinning.py FILE RULE..., as in files.py
"""

from files import report
from stein_thinning.thinning import thin


def thinned(preconditioner):
    return lambda given: thin(
        given["draws"], given["scores"], int(given["n"]), preconditioner=preconditioner
    )


if __name__ == "__main__":
    report({"defaults": thinned("id"), "med": thinned("med"), "sclmed": thinned("sclmed")})
