"""Lattices, digital nets and Halton points of qmcpy, as submissions.

In boxes, and for normal distributions by the inverse of their distribution function.
Run: python benchmarks/suite_peers/with_qmcpy.py FOLDER
"""

from entering import Rule, enter, from_unit_cube


def points_of(name):
    def points(problem, n):
        import qmcpy

        made = getattr(qmcpy, name)(problem.dim, seed=problem.seed)
        # The first points of a lattice are a lattice only if their number is a power of two.
        cube = made.gen_samples(1 << (n - 1).bit_length(), warn=False)[:n]
        return from_unit_cube(problem, cube)

    return points


RULES = [
    Rule("qmcpy_lattice", points_of("Lattice"), "sequence", "uniform", []),
    Rule("qmcpy_digital_net", points_of("DigitalNetB2"), "sequence", "uniform", []),
    Rule("qmcpy_halton", points_of("Halton"), "sequence", "uniform", []),
]

if __name__ == "__main__":
    enter(
        "qmcpy",
        "qmcpy",
        RULES,
        "S.-C. T. Choi et al., Quasi-Monte Carlo software, in: Monte Carlo and Quasi-Monte Carlo "
        "Methods 2020, Springer, 2022",
        "CC0-1.0",
        "https://github.com/QMCSoftware/QMCSoftware",
    )
