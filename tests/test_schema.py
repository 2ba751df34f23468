"""The schema of curves."""

import json

import paper_sweep
import pytest
import xarray as xr

from bqlib.schema import SchemaError, check_schema, problems_of, sizes_of_sets

SWEEP = """
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5]
algorithms: [iid]
candidates: {size: 20}
n: 8
seeds: 2
rate_windows: [[2, 8]]
"""


def test_every_departure_from_the_schema_is_listed(tmp_path):
    curves = paper_sweep.run(tmp_path, SWEEP)
    check_schema(curves, "here")
    bad = curves.drop_vars("mmd").assign(status=curves.status.astype(float))
    bad = bad.assign(weight_sum=curves.weight_sum.isel(n=0))
    with pytest.raises(SchemaError) as caught:
        check_schema(bad, "here")
    for problem in ("mmd is missing", "status has type float64", "weight_sum has dims"):
        assert problem in str(caught.value)


@pytest.mark.parametrize("sizes", ["abc", [5.5], [None], 5, {"a": 1}, [-3, 8], [True], [8, 8]])
def test_sizes_that_no_sweep_has_are_told(sizes):
    config = json.dumps({"algorithms": [{"name": "joint", "design": "joint", "sizes": sizes}]})
    dataset = xr.Dataset(attrs={"config": config})
    with pytest.raises(SchemaError, match="config has sizes of joint that are no rising whole"):
        sizes_of_sets(dataset)


@pytest.mark.parametrize(
    "problems",
    [[1], {"a": None}, {"a": {"n": ""}}, {"a": {"n": -5}}, {"a": {"n": 1.5}}, {"a": {"kernel": 3}}],
)
def test_problems_that_no_sweep_has_are_told(problems):
    for config in (json.dumps({"problems": problems}), "[]", "[" * 100_000, "{"):
        with pytest.raises(SchemaError, match="config has problems of another form"):
            problems_of({"config": config})
    assert problems_of({}) == {} and problems_of({"config": '{"name": "a"}'}) == {}
