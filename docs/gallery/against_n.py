import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy import stats

import bqlib

inputs = bqlib.Marginals(
    {
        "rw": stats.norm(0.10, 0.0161812),  # radius of the borehole, m
        "r": stats.lognorm(1.0056, scale=np.exp(7.71)),  # radius of influence, m
        "Tu": stats.uniform(63070, 115600 - 63070),  # transmissivity of the upper aquifer, m2/year
        "Hu": stats.uniform(990, 1110 - 990),  # head in the upper aquifer, m
        "Tl": stats.uniform(63.1, 116 - 63.1),  # transmissivity of the lower aquifer, m2/year
        "Hl": stats.uniform(700, 820 - 700),  # head in the lower aquifer, m
        "L": stats.uniform(1120, 1680 - 1120),  # length of the borehole, m
        "Kw": stats.uniform(9855, 12045 - 9855),  # conductivity of the borehole, m/year
    }
)


def simulate(rw, r, Tu, Hu, Tl, Hl, L, Kw):  # m3/year
    log = np.log(r / rw)
    return 2 * np.pi * Tu * (Hu - Hl) / (log * (1 + Tu / Tl) + 2 * L * Tu / (rw**2 * Kw))


table = inputs.table(bqlib.sobol_points(inputs, 32, rng=0))
flow = pd.Series([simulate(**run) for run in table.to_dict("records")], name="flow")
flow[17] = np.nan  # this run failed

true = simulate(**inputs.table(bqlib.sobol_points(inputs, 2**18, rng=0))).mean()
done = flow.dropna()
tried = table.loc[done.index]
sizes = [8, 16, 24, 31]
estimates = [bqlib.integrate(inputs, tried[:n], done[:n]) for n in sizes]
plt.figure(bqlib.plot_against_n(sizes, estimates, true=true))
