import matplotlib.pyplot as plt
import numpy as np

import bqlib
from bqlib.discrepancy import mmd2_of_prefixes

target = bqlib.Uniform([0, 0, 0], [1, 1, 1])
kernel = bqlib.Matern(0.5, nu=1.5)
n = np.arange(1, 101)

figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for rule in (bqlib.iid, bqlib.sobol, bqlib.herding, bqlib.p_greedy, bqlib.sbq):
    design = rule(target, kernel, len(n), rng=0, candidates=bqlib.Candidates(2000))
    weights = design.rule(design.embedding, design.points).matrix
    curve = np.sqrt(mmd2_of_prefixes(design.embedding, design.points, weights))
    axes.loglog(n, curve, label=rule.__name__)
axes.loglog(n, 1 / np.sqrt(n), ":", color="gray", label="n^(-1/2)")
axes.set(xlabel="number of points", ylabel="MMD")
axes.legend()
