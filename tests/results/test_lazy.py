"""Opened datasets: what people type in a notebook works on each kind, without a warning."""

import copy
import pickle

import numpy as np
import pytest
import xarray as xr
from matplotlib import pyplot as plt

import bqlib
from bqlib.results.lazy import opened_from
from bqlib.results.store import open_dataset


@pytest.fixture(scope="module")
def kinds(complete):
    """Name to a dataset, one of its quantities, and a dimension to work along.

    All but the experiment are loaded, as reading them again for each verb takes long.
    """
    folder = complete[1]
    curves = bqlib.open_results(folder)
    rates, cost = (
        open_dataset(folder / name).load() for name in ("rates.zarr", "studies/cost.zarr")
    )
    return {
        "crossover": (curves.bq.crossover("herding", "iid"), "points_needed", "lengthscale"),
        "experiment": (curves, "mmd", "algorithm"),
        "rates": (rates, "misfit", "algorithm"),
        "study": (cost, "seconds", "plan"),
    }


def first_of(array, *kept):
    return array.isel({dim: 0 for dim in array.dims if dim not in kept})


def first_number(dataset):
    """A dimension that has numbers as labels."""
    return "n" if "n" in dataset.dims else "lengthscale"


def random_labels(dataset, dim):
    return {dim: np.random.default_rng(0).integers(0, dataset.sizes[dim], 9)}


def two_parts(dataset, dim):
    return [dataset.isel({dim: [i]}) for i in range(2)]


def in_capitals(dataset, dim):
    return dataset.assign_coords({dim: [str(label).upper() for label in dataset[dim].values]})


def with_group(dataset, dim):
    return dataset.assign_coords(group=(dim, ["one", "other"])).groupby("group")


def drawn(array, dim):
    array.plot.hist()
    along = first_number(array)
    first_of(array, along, dim).plot.line(x=along, hue=dim)
    plt.close("all")


# ds: the dataset, q: a quantity of it, d: a dimension of it.
VERBS = {
    "idxmin": lambda ds, q, d: ds[q].idxmin(d),
    "argmin": lambda ds, q, d: ds[q].fillna(9).argmin(d),
    "astype": lambda ds, q, d: ds[d].astype(str),
    "groupby": lambda ds, q, d: ds.groupby(d).first(),
    "groupby derived": lambda ds, q, d: with_group(ds, d).count(),
    "groupby_bins": lambda ds, q, d: ds[q].groupby_bins(ds[q], 2).mean(...),
    "to_dataframe": lambda ds, q, d: ds.to_dataframe()._repr_html_(),
    "to_pandas": lambda ds, q, d: first_of(ds[q], d).to_pandas().sort_index(),
    "quantile": lambda ds, q, d: ds[q].fillna(9).quantile([0.1, 0.5], d),
    "median": lambda ds, q, d: ds.median(d),
    "max": lambda ds, q, d: ds.max(d),
    "concat": lambda ds, q, d: xr.concat(two_parts(ds, d), d, data_vars="all"),
    "merge": lambda ds, q, d: xr.merge([ds[[q]], ds.rename({q: "other"})[["other"]]]),
    "combine_first": lambda ds, q, d: ds.isel({d: [0]}).combine_first(ds),
    "combine_by_coords": lambda ds, q, d: xr.combine_by_coords(two_parts(ds, d), data_vars="all"),
    "where": lambda ds, q, d: ds.where(ds[q] > 0),
    "fillna": lambda ds, q, d: ds[[q]].fillna(0),
    "dropna": lambda ds, q, d: ds.dropna(d),
    "isel at random": lambda ds, q, d: ds[[q]].isel(random_labels(ds, d)).mean(d),
    "interp": lambda ds, q, d: ds.interp({first_number(ds): [0.7]}),
    "rolling": lambda ds, q, d: ds[q].rolling({d: 2}).mean(),
    "cumulative": lambda ds, q, d: ds[q].cumulative(d).max(),
    "stack": lambda ds, q, d: ds.stack(both=(d, first_number(ds))).unstack("both"),
    "rename": lambda ds, q, d: ds.rename({d: "rule", q: "value"}),
    "assign_coords": lambda ds, q, d: in_capitals(ds, d),
    "sortby": lambda ds, q, d: ds.sortby(d, ascending=False),
    "to_dataarray": lambda ds, q, d: ds.to_dataarray(),
    "weighted": lambda ds, q, d: ds[[q]].weighted(xr.ones_like(ds[d], float)).mean(d),
    "reindex": lambda ds, q, d: ds.isel({d: [0]}).reindex_like(ds),
    "polyfit": lambda ds, q, d: ds[q].fillna(0).polyfit(first_number(ds), 1),
    "pickle": lambda ds, q, d: xr.testing.assert_identical(pickle.loads(pickle.dumps(ds)), ds),
    "deepcopy": lambda ds, q, d: xr.testing.assert_identical(copy.deepcopy(ds), ds),
    "shown": lambda ds, q, d: f"{ds} {ds[q]}" + ds._repr_html_() + ds[q]._repr_html_(),
    "plot": lambda ds, q, d: drawn(ds[q], d),
    "chunk": lambda ds, q, d: ds.chunk({d: 1}).unify_chunks().compute(),
}


@pytest.mark.parametrize("verb", VERBS)
def test_verbs_of_xarray_work(kinds, verb):
    for name, (dataset, quantity, dim) in kinds.items():
        try:
            found = VERBS[verb](dataset, quantity, dim)
            if isinstance(found, xr.Dataset | xr.DataArray):
                repr(found.compute())
        except Exception as error:
            error.add_note(name)
            raise


@pytest.mark.parametrize("kind", ["curves", "rates"])
@pytest.mark.parametrize("form", [2, 3, "nc"])
def test_what_xarray_writes_in_other_chunks_reads_back(kinds, kind, form, tmp_path):
    curves = kinds["experiment"][0]
    dataset = curves if kind == "curves" else curves.bq.rates()  # in memory
    chunked = dataset.chunk(lengthscale=1)
    if form == "nc":
        chunked.to_netcdf(tmp_path / "x.nc")
        back = xr.open_dataset(tmp_path / "x.nc")
    else:
        consolidated = form == 2  # if so, Zarr warns of every store of format 3
        chunked.to_zarr(tmp_path / "x", zarr_format=form, consolidated=consolidated)
        back = xr.open_zarr(tmp_path / "x", chunks=None, consolidated=consolidated)
    xr.testing.assert_identical(back.load(), dataset.compute())
    back.close()


def test_verbs_that_need_strings_work_on_merged_experiments(complete):
    merged = bqlib.open_results([complete[1], complete[1]])[["mmd", "status", "reason"]]
    for verb in ("idxmin", "where", "reindex", "chunk"):
        VERBS[verb](merged, "mmd", "algorithm").compute()


def test_quantiles_of_all_variables_need_another_name(complete):
    curves = bqlib.open_results(complete[1])
    assert curves["error"].quantile([0.1, 0.9], "seed").sizes["quantile"] == 2
    with pytest.raises(ValueError, match="unexpected dimensions"):
        curves.quantile(0.9, "seed")


def test_texts_are_strings_that_are_read_when_they_are_used(complete):
    curves = bqlib.open_results(complete[1])
    assert not curves["reason"]._in_memory
    assert {type(text) for text in curves["reason"].values.flat} == {str}
    assert curves["reason"]._in_memory
    assert {type(label) for label in curves["algorithm"].values} == {str}
    assert curves["reason"][0, 0, 0, 0, 0].item() == ""


def test_a_dataset_knows_its_stores(complete):
    store = str(complete[1] / "curves.zarr")
    curves = bqlib.open_results(complete[1])
    assert opened_from(curves.sel(algorithm="iid").isel(seed=[0])) == (store,)
    assert opened_from(bqlib.open_results([complete[1], complete[1]])) == (store, store)
    assert opened_from(xr.Dataset()) == ()
