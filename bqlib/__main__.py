"""The command ``bqlib``, also as ``python -m bqlib``."""

import os
import sys

from bqlib.cli.main import main

# As for runs: the backend that Jupyter exports need not be installed here, and without it plug-ins
# cannot import matplotlib.
os.environ["MPLBACKEND"] = "agg"

if __name__ == "__main__":
    sys.exit(main())
