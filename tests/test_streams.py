import copy

import numpy as np
import pytest
from numpy.random import MT19937, PCG64, PCG64DXSM, SFC64, Generator, Philox, RandomState

from bqlib import (
    Candidates,
    ExponentiatedQuadratic,
    GaussianMixture,
    Product,
    Uniform,
    embed,
    halton,
    iid,
    latin_hypercube,
    lattice,
    rpcholesky,
    sbq,
    sobol,
)
from bqlib.checks import checked_rng
from bqlib.integrands import genz_gaussian_peak, rkhs_ball, rough_bumps
from bqlib.posterior import joint_draws
from bqlib.streams import stream


def test_a_stream_is_the_same_wherever_it_is_made():
    # Digits fixed once: results of finished sweeps depend on them.
    drawn = stream("candidates", 3).integers(0, 1000, size=5)
    np.testing.assert_array_equal(drawn, stream("candidates", 3).integers(0, 1000, size=5))
    assert drawn.tolist() == [619, 731, 716, 940, 102]


@pytest.mark.parametrize("other", [("candidates", 4), ("design/iid", 3), ("candidate", 3)])
def test_streams_of_other_purposes_or_seeds_differ(other):
    ours, theirs = stream("candidates", 3).random(1000), stream(*other).random(1000)
    assert abs(np.corrcoef(ours, theirs)[0, 1]) < 0.15
    assert not np.intersect1d(ours, theirs).size


KERNEL = ExponentiatedQuadratic(1.0)
MIXTURE = GaussianMixture([0.5, 0.5], [[0.0], [3.0]], [[[1.0]], [[1.0]]])
BOTH = Product([MIXTURE, Uniform([0.0], [1.0])])
FRESH = Candidates(size=30, fresh=True)


def used(bit_generator):
    generator = Generator(bit_generator)
    generator.random()
    return generator


def ninth_state():
    generator = Generator(PCG64())
    generator.bit_generator.state = PCG64(9).state
    return generator


SEEDED = {
    family: lambda family=family: Generator(family(5))
    for family in (PCG64, PCG64DXSM, MT19937, SFC64, Philox)
}
OTHERS = {
    "jumped": lambda: Generator(PCG64(5).jumped(1)),
    "jumped twice": lambda: Generator(PCG64(5).jumped(2)),
    "advanced": lambda: Generator(PCG64(5).advance(7)),
    "set": ninth_state,
    "key": lambda: Generator(Philox(key=7)),
    "legacy": lambda: Generator(RandomState(5)._bit_generator),
    "used": lambda: used(PCG64(5)),
    "used Mersenne": lambda: used(MT19937(5)),
}
DRAWS = {
    "sample": lambda rng: MIXTURE.sample(9, rng),
    "product": lambda rng: BOTH.sample(9, rng),
    "draw": lambda rng: Candidates(9).draw(MIXTURE, rng),
    "iid": lambda rng: iid(MIXTURE, KERNEL, 9, rng=rng).points,
    "halton": lambda rng: halton(MIXTURE, KERNEL, 9, rng=rng).points,
    "latin_hypercube": lambda rng: latin_hypercube(MIXTURE, KERNEL, 9, rng=rng).points,
    "lattice": lambda rng: lattice(MIXTURE, KERNEL, 8, rng=rng).points,
    "sobol": lambda rng: sobol(MIXTURE, KERNEL, 9, rng=rng).points,
    "sbq": lambda rng: sbq(MIXTURE, KERNEL, 5, rng=rng, candidates=FRESH).points,
    "rpcholesky": lambda rng: rpcholesky(BOTH, KERNEL, 5, rng=rng, candidates=FRESH).points,
    "rkhs_ball": lambda rng: rkhs_ball(embed(KERNEL, MIXTURE), rng, functions=2).integrals,
    "rough_bumps": lambda rng: (
        rough_bumps(embed(KERNEL, MIXTURE), rng, narrowest=0.1, widest=1.0, functions=2).integrals
    ),
    "genz": lambda rng: (
        genz_gaussian_peak(embed(KERNEL, MIXTURE), rng, difficulty=2.0, functions=2).integrals
    ),
    "joint_draws": lambda rng: joint_draws(embed(KERNEL, MIXTURE), np.zeros((1, 1)), 2, rng)[1],
}


@pytest.mark.parametrize(
    "make", [*SEEDED.values(), *OTHERS.values()], ids=[*map(str, SEEDED), *OTHERS]
)
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_equal_generators_draw_the_same_and_go_on(draw, make):
    generator, again = make(), make()
    twin = copy.deepcopy(generator)
    first = draw(generator)
    np.testing.assert_array_equal(first, draw(again))
    np.testing.assert_array_equal(first, draw(twin))
    assert not np.array_equal(first, draw(generator))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_what_is_drawn_follows_from_the_state(draw):
    found = [draw(make()) for make in [lambda: np.random.default_rng(5), *OTHERS.values()]]
    for i, one in enumerate(found):
        assert not any(np.array_equal(one, other) for other in found[:i])
    generator = used(PCG64(5))
    state = generator.bit_generator.state
    first = draw(generator)
    generator.bit_generator.state = state
    np.testing.assert_array_equal(first, draw(generator))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_fresh_generator_gives_what_its_seed_gives(draw):
    np.testing.assert_array_equal(draw(5), draw(np.random.default_rng(5)))


def test_children_of_a_fresh_generator_are_those_of_numpy():
    ours, theirs = checked_rng(np.random.default_rng(3)), np.random.default_rng(3)
    for count in (2, 3):  # also after draws, as within one design draws and children alternate
        for one, other in zip(ours.spawn(count), theirs.spawn(count), strict=True):
            np.testing.assert_array_equal(one.random(3), other.random(3))
            assert one.spawn(1)[0].random() == other.spawn(1)[0].random()
        assert ours.random() == theirs.random()
