"""stein_thinning, as submissions: rows of the pool where the score of the target is known.

Its own Stein kernel, an inverse multiquadric of the standardised draws, picks them. It takes any
candidates, so that pools from a box are no fault.
Run: python benchmarks/suite_peers/with_stein_thinning.py FOLDER
"""

from entering import Rule, enter


def thinned(preconditioner):
    def points(problem, n):
        from stein_thinning.thinning import thin

        if problem.scores is None or problem.kernel["family"] != "stein":
            return None
        picks = thin(problem.pool, problem.scores, n, preconditioner=preconditioner)
        return problem.pool[picks]

    return points


RULES = [
    Rule("stein_thinning_id", thinned("id"), "sequence", "uniform", ["pool", "score"]),
    Rule("stein_thinning_med", thinned("med"), "sequence", "uniform", ["pool", "score"]),
]

if __name__ == "__main__":
    enter(
        "stein_thinning",
        "stein_thinning",
        RULES,
        "M. Riabiz et al., Optimal thinning of MCMC output, JRSS B 84(4), 1059-1081, 2022",
        "CC0-1.0",
        "https://github.com/wilson-ye-chen/stein_thinning",
    )
