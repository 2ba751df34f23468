import json
import pickle
import subprocess
import sys
from dataclasses import fields, replace

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from project import CONFIG
from written_sweep import NORMAL, SWEEP, edited, loaded, problems_of

from bqlib.candidates import Candidates
from bqlib.results.layout import piece_name
from bqlib.sweep import registry
from bqlib.sweep.build import build_integrand
from bqlib.sweep.file import load
from bqlib.sweep.spec import Algorithm, Cell

# Not for every kernel, n or dimension:
SPECIAL = {"stein_thinning", "lattice", "lattice_bq", "grid", "grid_bq", "msip"}
ON_ANY_KERNEL = sorted({*registry.ALGORITHMS} - SPECIAL)
# Each example overwrites the sweep file of the one before.
IN_ONE_FOLDER = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def test_the_default_is_the_paper():
    sweep = load(CONFIG / "config.yaml")
    assert sweep.name == "matching"
    assert list(sweep.targets) == ["chen2010_mixture"]
    assert sweep.kernels == {
        "eq_density": {"family": "exponentiated_quadratic", "scale": "density"}
    }
    assert sweep.lengthscales == (0.25, 0.5, 1.0)
    assert [algorithm.name for algorithm in sweep.algorithms] == [
        "iid",
        "herding",
        "herding_bq",
        "sbq",
    ]
    assert sweep.candidates == Candidates(size=10_000, source="target")
    assert (sweep.n, sweep.seeds, sweep.seeds_per_job) == (400, 10, 10)
    assert sweep.rate_windows == ((20, 200), (20, 400))
    target, kernel = sweep.spec(sweep.cells()[0]).build()
    assert target.dim == 2
    assert len(target.weights) == 20
    # The first and last numbers of the published mixture.
    assert target.weights[0] == 0.050762495658215584
    assert target.covariances[-1, -1, -1] == 0.4698938905296629
    assert (kernel.lengthscale, kernel.scale) == (0.25, "density")


def test_the_quick_sweep_is_small():
    sweep = load(CONFIG / "quick.yaml")
    assert sweep.name == "quick"
    assert len(sweep.cells()) * sweep.seeds * sweep.n * sweep.candidates.size <= 1e6


def test_cells_and_pieces_are_in_a_fixed_order(sweep_folder):
    sweep = loaded(SWEEP)
    assert sweep.cells() == [
        Cell("normal", "eq", 0.5, "iid"),
        Cell("normal", "eq", 0.5, "sbq"),
        Cell("normal", "eq", 1.0, "iid"),
        Cell("normal", "eq", 1.0, "sbq"),
    ]
    assert sweep.blocks() == [(0, 1), (2, 2)]
    assert piece_name(sweep.cells()[3], (2, 2)) == "normal/eq/1/sbq/seeds-2-2.zarr.zip"


def test_length_scales_keep_12_digits(sweep_folder):
    sweep = loaded(edited(("[0.5, 1]", "[0.30000000000000004, 1e-3, 12345.6789012345]")))
    assert sweep.lengthscales == (0.3, 0.001, 12345.6789012)
    names = [piece_name(cell, (0, 1)) for cell in sweep.cells()[::2]]
    assert [name.split("/")[2] for name in names] == ["0.3", "0.001", "12345.6789012"]


def test_shapes_are_multiplied_by_the_length_scale(sweep_folder):
    kernels = (
        "eq: {family: exponentiated_quadratic, scale: density}",
        "ard: {family: exponentiated_quadratic, shape: [1, 2]}\n"
        "  full: {family: exponentiated_quadratic, shape: [[1, 0.5], [0.5, 2]]}",
    )
    sweep = loaded(edited(kernels))
    ard, full = (
        sweep.spec(Cell("normal", label, 0.5, "sbq")).build()[1] for label in ("ard", "full")
    )
    np.testing.assert_allclose(ard.lengthscale, [0.5, 1.0])
    np.testing.assert_allclose(full.covariance, [[0.25, 0.125], [0.125, 0.5]])


def test_any_design_goes_with_any_weights(sweep_folder):
    sweep = loaded(edited(("[iid, sbq]", "[{name: mine, design: sbq, weights: uniform}]")))
    spec = sweep.spec(sweep.cells()[0])
    assert spec.cell.algorithm == "mine" and spec.algorithm == Algorithm("mine", "sbq", "uniform")


def test_a_kernel_made_for_a_target_gets_it(sweep_folder, monkeypatch):
    class Bound(registry.find("kernel", "exponentiated_quadratic")):
        def __init__(self, target, lengthscale, strength: float = 1.0):
            super().__init__(lengthscale=lengthscale)
            object.__setattr__(self, "bound_to", (target, strength))

    monkeypatch.setitem(registry.PLACES["kernel"], "bound", f"{__name__}:Bound")
    monkeypatch.setattr(sys.modules[__name__], "Bound", Bound, raising=False)
    kernel = "{family: bound, strength: 2, shape: [1, 2]}"
    sweep = loaded(edited(("{family: exponentiated_quadratic, scale: density}", kernel)))
    target, kernel = sweep.spec(sweep.cells()[0]).build()
    assert kernel.bound_to == (target, 2.0)
    full = edited(
        ("{family: exponentiated_quadratic, scale: density}", "{family: bound, shape: [[1]], x: 1}")
    )
    assert problems_of(full) == [
        '4: kernels.eq.x: unknown key "x". Allowed: family, strength, shape'
    ]
    assert problems_of(full.replace(", x: 1", "")) == [
        "4: kernels.eq.shape: bound takes a list of numbers, not a full matrix"
    ]


def test_integrands_of_a_sweep(sweep_folder):
    integrands = (
        "n: 40",
        "integrands:\n  b: {family: rkhs_ball}\n"
        "  a: {widest: 2, family: rough_bumps, narrowest: 1e-1, centre_variance: 3}\nn: 40",
    )
    sweep = loaded(edited(integrands))
    assert list(sweep.integrands) == ["b", "a"]
    assert sweep.integrands["a"]["centre_variance"] == 3.0
    spec = sweep.spec(sweep.cells()[0])
    (ball, defaults), (bumps, parameters) = map(build_integrand, spec.integrands.values())
    assert (ball, bumps) == tuple(
        registry.find("integrand", f) for f in ("rkhs_ball", "rough_bumps")
    )
    assert defaults == {"functions": 250, "terms": 10, "centre_variance": None}
    assert (parameters["narrowest"], parameters["widest"]) == (0.1, 2.0)
    assert pickle.loads(pickle.dumps(spec)).digest == spec.digest


# --- Digests and the canonical form


def only_spec(text):
    sweep = loaded(text)
    return sweep.spec(sweep.cells()[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scale: density", "scale: unit"),
        ("scale: density", "scale: density, shape: [1, 2]"),
        ("[0.5, 1]", "[0.500001]"),
        ("[normal]", "[normal_copy]"),
        ("[iid, sbq]", "[sbq]"),
        ("[iid, sbq]", "[iid_bq]"),
        ("size: 100", "size: 101"),
        ("size: 100", "size: 100\n  fresh: true"),
        ("size: 100", "size: 100\n  source: inflated"),
        ("n: 40", "n: 41"),
        ("n: 40", "n: 40\nintegrands: {a: {family: rkhs_ball}}"),
    ],
)
def test_the_digest_changes_with_the_science(sweep_folder, old, new):
    (sweep_folder / "targets" / "normal_copy.json").write_text(json.dumps(NORMAL))
    assert only_spec(edited((old, new))).digest != only_spec(SWEEP).digest


def test_the_digest_changes_with_the_numbers_of_the_target(sweep_folder):
    before = only_spec(SWEEP)
    moved = NORMAL | {"means": [[0.0, 1e-300]]}
    (sweep_folder / "targets" / "normal.json").write_text(json.dumps(moved))
    assert only_spec(SWEEP).digest != before.digest


def test_the_digest_changes_with_the_code(sweep_folder):
    spec = only_spec(SWEEP)
    assert replace(spec, fingerprint="other").digest != spec.digest
    assert replace(spec).digest == spec.digest


def test_a_cells_fingerprint_is_of_the_code_it_uses(sweep_folder):
    sweep = loaded(SWEEP)
    iid, sbq, *_ = (sweep.spec(cell) for cell in sweep.cells())
    assert iid.fingerprint != sbq.fingerprint
    assert sbq.fingerprint == sweep.spec(sweep.cells()[3]).fingerprint


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: tiny", "name: other\ntitle: Another"),
        ("[0.5, 1]", "[5.0e-1, 2, 3] # more"),
        ("[0.5, 1]", "[0.50000000000000011]"),
        ("[iid, sbq]", "[iid]"),
        ("[iid, sbq]", "[{weights: uniform, design: iid, name: iid}]"),
        ("{family: exponentiated_quadratic, scale: density}", "\n    scale: density\n"
         "    family: 'exponentiated_quadratic'"),
        ("size: 100", "size: 100\n  source: target\n  fresh: false"),
        ("seeds: 3", "seeds: 5"),
        ("job: 2", "job: 1"),
        ("[[5, 40]]", "[[5, 40], [10, 40]]"),
        ("n: 40", "n: 40\nintegrands: {}"),
    ],
)  # fmt: skip
def test_the_digest_stays_with_everything_else(sweep_folder, old, new):
    assert only_spec(edited((old, new))).digest == only_spec(SWEEP).digest


def test_the_digest_stays_when_a_target_file_is_only_written_otherwise(sweep_folder):
    before = only_spec(SWEEP).digest
    otherwise = {"licence": "none", "means": [[0, -0.0]]} | NORMAL | {"about": "Changed."}
    otherwise |= {"weights": [1], "means": [[0, -0.0]], "covariances": [[[1, 0], [0, 1e0]]]}
    (sweep_folder / "targets" / "normal.json").write_text(json.dumps(otherwise, indent=3))
    assert only_spec(SWEEP).digest == before


def test_a_default_that_is_written_out_changes_nothing(sweep_folder):
    short, long = (edited((", scale: density", scale)) for scale in ("", ", scale: unit"))
    assert only_spec(short) == only_spec(long)
    assert only_spec(short).digest == only_spec(long).digest


def test_the_digest_changes_with_each_word_on_the_integrands(sweep_folder):
    bodies = [
        "a: {family: rkhs_ball}",
        "b: {family: rkhs_ball}",
        "a: {family: rkhs_ball, terms: 11}",
        "a: {family: rkhs_ball}, b: {family: genz_oscillatory, difficulty: 2}",
        "b: {family: genz_oscillatory, difficulty: 2}, a: {family: rkhs_ball}",
    ]
    specs = [only_spec(edited(("n: 40", f"integrands: {{{body}}}\nn: 40"))) for body in bodies]
    assert len({spec.digest for spec in specs}) == len(bodies)
    assert all(spec.code_here() == spec.fingerprint for spec in specs)
    # Code that no integrand of the sweep uses does not count.
    assert specs[0].fingerprint == specs[2].fingerprint != specs[3].fingerprint


def test_specs_pickle_with_all_that_a_worker_needs(sweep_folder):
    spec = only_spec(SWEEP)
    copy = pickle.loads(pickle.dumps(spec))
    assert copy == spec
    assert copy.digest == spec.digest
    target, kernel = copy.build()
    assert (target.dim, kernel.lengthscale, kernel.scale) == (2, 0.5, "density")


LABELS = st.from_regex("[a-z][a-z0-9_]{0,8}", fullmatch=True)


@st.composite
def sweeps(draw):
    """A valid sweep as a tree."""
    n = draw(st.integers(2, 60))
    lengthscales = draw(
        st.lists(st.floats(0.01, 100), min_size=1, max_size=4, unique_by=lambda x: f"{x:.12g}")
    )
    shapes = st.none() | st.lists(st.integers(1, 5) | st.floats(0.1, 9), min_size=2, max_size=2)
    kernels = {}
    for label in draw(st.lists(LABELS, min_size=1, max_size=3, unique=True)):
        kernels[label] = {"family": "exponentiated_quadratic"}
        shape, scale = draw(shapes), draw(st.sampled_from([None, "unit", "density"]))
        kernels[label] |= {k: v for k, v in {"shape": shape, "scale": scale}.items() if v}
    algorithms = draw(st.lists(st.sampled_from(ON_ANY_KERNEL), min_size=1, max_size=4, unique=True))
    return {
        "name": draw(LABELS),
        "title": draw(st.text(st.characters(exclude_categories=["C"]), max_size=20)),
        "targets": ["normal"],
        "kernels": kernels,
        "lengthscales": lengthscales,
        "algorithms": algorithms,
        "candidates": {
            "size": draw(st.integers(n, 100)),
            "source": "box",
            "box": [[-1, 1], [0, 2]],
        },
        "n": n,
        "seeds": draw(st.integers(1, 30)),
        "seeds_per_job": draw(st.integers(1, 30)),
        "rate_windows": [[1, n]],
    }


@IN_ONE_FOLDER
@given(tree=sweeps(), data=st.data())
def test_equal_sweeps_are_equal_however_they_are_written(sweep_folder, tree, data):
    sweep = loaded(yaml.safe_dump(tree))
    other = {key: tree[key] for key in data.draw(st.permutations(list(tree)))}
    other["lengthscales"] = [x * (1 + 1e-16) for x in tree["lengthscales"]]
    other["candidates"] = tree["candidates"] | {"fresh": False, "box": [[-1.0, 1e0], [0.0, 2.0]]}
    other["algorithms"] = []
    for name in tree["algorithms"]:
        design, weights, *parameters = registry.ALGORITHMS[name]
        if parameters:
            design = {"family": design} | parameters[0]
        other["algorithms"].append({"name": name, "design": design, "weights": weights})
    other["kernels"] = {
        label: {"scale": "unit"} | parameters for label, parameters in tree["kernels"].items()
    }
    again = loaded(yaml.safe_dump(other, sort_keys=False, default_flow_style=True))
    assert again == sweep
    assert again.canonical() == sweep.canonical()
    text = json.dumps(sweep.canonical(), allow_nan=False)
    assert json.loads(text) == sweep.canonical()
    names = {field.name for field in fields(sweep)} - {"problems", "inapplicable"}
    assert set(sweep.canonical()) == names


@IN_ONE_FOLDER
@given(tree=sweeps())
def test_cells_and_blocks_cover_the_sweep_once(sweep_folder, tree):
    sweep = loaded(yaml.safe_dump(tree))
    cells, blocks = sweep.cells(), sweep.blocks()
    counts = [len(tree[key]) for key in ("targets", "kernels", "lengthscales", "algorithms")]
    assert len(set(cells)) == len(cells) == np.prod(counts)
    assert [seed for first, last in blocks for seed in range(first, last + 1)] == list(
        range(tree["seeds"])
    )
    names = {piece_name(cell, block) for cell in cells for block in blocks}
    assert len(names) == len(cells) * len(blocks)
    for cell in cells:
        assert float(f"{cell.lengthscale:.12g}") == cell.lengthscale
    more = replace(sweep, seeds=sweep.seeds + 7).blocks()
    full = [block for block in blocks if block[1] - block[0] + 1 == sweep.seeds_per_job]
    assert more[: len(full)] == full


def test_the_canonical_form_is_a_copy(sweep_folder):
    sweep = loaded(SWEEP)
    sweep.canonical()["targets"]["normal"]["weights"].append(1.0)
    assert sweep == loaded(SWEEP)


# --- What importing costs


def test_workers_load_neither_the_grammar_nor_the_store():
    heavy = ["dask", "matplotlib", "pydantic", "xarray", "yaml", "zarr"]
    code = f"import sys, bqlib.sweep.build; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_reading_a_sweep_loads_no_store():
    heavy = ["dask", "matplotlib", "xarray", "zarr"]
    code = (
        "import sys; from bqlib.sweep.file import load; "
        f"load({str(CONFIG / 'config.yaml')!r}); print([m for m in {heavy} if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
