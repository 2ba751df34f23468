import subprocess
import sys

import pytest

import bqlib


@pytest.mark.parametrize("statement", ["import bqlib", "from bqlib import sbq, GaussianMixture"])
def test_the_library_loads_without_the_pipeline(statement):
    heavy = ("dask", "distributed", "zarr", "xarray", "matplotlib", "pandas", "snakemake")
    code = f"{statement}; import sys; print([m for m in {heavy} if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_importing_the_package_alone_loads_no_numerics():
    code = "import bqlib, sys; print('numpy' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_modules_load_as_attributes():
    code = "import bqlib; print(bqlib.weights.bq.__name__, bqlib.discrepancy.mmd2.__name__)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "bq mmd2"


def test_public_names_exist_and_are_documented():
    for name in bqlib.__all__:
        assert getattr(bqlib, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'sbk'"):
        bqlib.sbk  # noqa: B018
