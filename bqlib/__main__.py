"""The command ``bqlib``, also as ``python -m bqlib``."""

import sys

from bqlib.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
