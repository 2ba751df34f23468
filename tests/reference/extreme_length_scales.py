"""Make extreme_length_scales.json: `pip install mpmath`, then `python extreme_length_scales.py`.

Each value comes from a formula that bqlib does not use: prior variances of rational quadratic
kernels by Tricomi's U, their boxes by 2F1, the rest by quadrature with 32 digits; Matern kernels by
erfc with 480 digits, where its cancellation does no harm.
"""

import json
from pathlib import Path

from mpmath import e, erfc, gamma, hyp2f1, hyperu, log, log1p, mp, mpf, nstr, pi, sqrt

POINTS = ["0.001", "0.1", "0.5", "2", "4", "10"]


def digits(value):
    return nstr(value, 20, min_fixed=0, max_fixed=0)


def case(family, settings, target, values, variance):
    return {
        "kernel": {"family": family, **settings},
        "target": target,
        "kernel_mean": [digits(value) for value, _ in values],
        "kernel_mean_gradient": [digits(slope) for _, slope in values],
        "prior_variance": digits(variance),
    }


def gamma_mean(alpha, lengthscale, dim, x):
    """z and its slope for N(0, I) at (x, 0, ...), by the trapezoidal rule in log tau."""
    spread, square = 1 / lengthscale**2, (x / lengthscale) ** 2
    step, low = mpf(1) / (4 + 2 * sqrt(alpha)), log(1 + spread + square) + 50 / alpha + 3
    value = slope = mpf(0)
    for k in range(-int(low / step), int(log(1 + 120 / alpha + 30 / sqrt(alpha)) / step)):
        tau = e ** (k * step)
        wider = 1 + tau * spread
        term = e ** (
            alpha * log(tau) - alpha * tau - tau * square / wider / 2 - dim * log(wider) / 2
        )
        value += term
        slope -= term * tau * x / wider / lengthscale**2
    scale = step * alpha**alpha / gamma(alpha)
    return value * scale, slope * scale


def rational_quadratic_normal(alpha, lengthscale, dim):
    settings = {"alpha": float(alpha), "lengthscale": float(lengthscale)}
    a, length = mpf(float(alpha)), mpf(float(lengthscale))
    q = a * length**2 / 2
    values = [gamma_mean(a, length, dim, mpf(float(x))) for x in POINTS]
    variance = q ** (mpf(dim) / 2) * hyperu(mpf(dim) / 2, mpf(dim) / 2 + 1 - a, q)
    target = {"family": "GaussianMixture", "weights": [1.0], "means": [[0.0] * dim]}
    target["deviations"] = [[1.0] * dim]
    return case("RationalQuadratic", settings, target, values, variance)


def rational_quadratic_box(alpha, lengthscale):
    settings = {"alpha": float(alpha), "lengthscale": float(lengthscale)}
    a, unit = mpf(float(alpha)), 2 * mpf(float(alpha)) * mpf(float(lengthscale)) ** 2

    def kernel(r):
        return e ** (-a * log1p(r * r / unit))

    def integral(r):
        return r * hyp2f1(0.5, a, 1.5, -r * r / unit)

    points = [mpf(float(x)) for x in POINTS]
    values = [(integral(x) - integral(x - 1), kernel(x) - kernel(x - 1)) for x in points]
    moment = unit / 2 / (1 - a) * ((1 + 1 / unit) ** (1 - a) - 1)
    target = {"family": "Uniform", "lower": [0.0], "upper": [1.0]}
    return case("RationalQuadratic", settings, target, values, 2 * (integral(mpf(1)) - moment))


def one_sided(coefficients, u, deviation, rate):
    b = rate * deviation
    moments = [e ** (b * b / 2 - rate * u) * erfc((b - u / deviation) / sqrt(2)) / 2]
    density = e ** (-((u / deviation) ** 2) / 2) / sqrt(2 * pi)
    centre = rate * u - b * b
    moments.append(centre * moments[0] + b * density)
    moments.append(centre * moments[1] + b * b * moments[0])
    return sum(p * moment for p, moment in zip(coefficients, moments, strict=False))


def matern_normal(nu, lengthscale):
    rate = sqrt(2 * mpf(nu)) / mpf(float(lengthscale))
    value = [mpf(1), mpf(1), mpf(1) / 3][: int(nu + 0.5)]
    slope = {0.5: [1], 1.5: [0, 1], 2.5: [0, mpf(1) / 3, mpf(1) / 3]}[nu]

    def sides(coefficients, x, deviation):
        return [one_sided(coefficients, side, deviation, rate) for side in (x, -x)]

    values = []
    for x in map(mpf, map(float, POINTS)):
        right, left = sides(slope, x, mpf(1))
        values.append((sum(sides(value, x, mpf(1))), -rate * (right - left)))
    settings = {"nu": nu, "lengthscale": float(lengthscale)}
    target = {"family": "GaussianMixture", "weights": [1.0], "means": [[0.0]]}
    target["deviations"] = [[1.0]]
    return case("Matern", settings, target, values, sum(sides(value, mpf(0), sqrt(mpf(2)))))


def integral_of(coefficients, r):
    """Integral of P(t) exp(-t) from 0 to r."""
    below = [1 - e**-r]
    for k in range(1, len(coefficients)):
        below.append(k * below[-1] - r**k * e**-r)
    return sum(p * b for p, b in zip(coefficients, below, strict=True))


def matern_box(nu, lengthscale):
    rate = sqrt(2 * mpf(nu)) / mpf(float(lengthscale))
    value = [mpf(1), mpf(1), mpf(1) / 3][: int(nu + 0.5)]

    def profile(r):
        r = rate * abs(r)
        return e**-r * sum(p * r**k for k, p in enumerate(value))

    def odd(r):
        return (1 if r > 0 else -1) * integral_of(value, rate * abs(r)) / rate

    points = [mpf(float(x)) for x in POINTS]
    values = [(odd(x) - odd(x - 1), profile(x) - profile(x - 1)) for x in points]
    moment = integral_of([mpf(0), *value], rate) / rate**2
    target = {"family": "Uniform", "lower": [0.0], "upper": [1.0]}
    variance = 2 * (integral_of(value, rate) / rate - moment)
    return case("Matern", {"nu": nu, "lengthscale": float(lengthscale)}, target, values, variance)


def make():
    mp.dps = 32
    made = [
        rational_quadratic_normal(alpha, lengthscale, dim)
        for alpha, dim in (("0.1", 5), ("0.3", 1), ("1", 1), ("1", 2), ("2.5", 2), ("50", 1))
        for lengthscale in ("1e-6", "1e-3", "1", "1e3")
        if not (alpha in ("0.1", "50") and lengthscale == "1e-6")  # slow, and below float64
    ]
    # Here the derivative of the Faddeeva function cancels.
    made += [rational_quadratic_normal("1", lengthscale, 1) for lengthscale in ("0.13", "5")]
    mp.dps = 160  # differences of 2F1 cancel far out
    for alpha in ("0.3", "1.5", "10"):
        made += [rational_quadratic_box(alpha, length) for length in ("1e-3", "1", "1e3")]
    mp.dps = 480
    for nu in (0.5, 1.5, 2.5):
        for lengthscale in ("1e-3", "0.03", "0.2", "0.5", "1", "3", "30", "1e3"):
            made.append(matern_normal(nu, lengthscale))
        for lengthscale in ("1e-3", "0.2", "1", "30", "1e3"):
            made.append(matern_box(nu, lengthscale))
    return made


if __name__ == "__main__":
    path = Path(__file__).with_suffix(".json")
    points = [float(x) for x in POINTS]
    cases = ",\n".join("  " + json.dumps(one) for one in make())
    path.write_text(
        f'{{\n "source": "{Path(__file__).name}: mpmath; points in the first coordinate, the '
        f'others are 0",\n "points": {json.dumps(points)},\n "cases": [\n{cases}\n ]\n}}\n'
    )
