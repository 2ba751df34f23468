"""Snakemake, started as by ``python -m snakemake --configfile SWEEP``, after a check of the sweep.

A sweep that is wrong is told before Snakemake is loaded. Ctrl-C ends this quietly: Snakemake
answers it from its first job on. Until then, while it loads and reads the workflow, Ctrl-C would
end in a page of Python's.
"""

import gc
import sys

INTERRUPTED = 130


def main(sweep):
    """Check a sweep and be Snakemake, whose command line is that of this process.

    The workflow reads the sweep again in this process: what that needs is loaded once.
    """
    from bqlib.sweep.file import load  # 0.4 s, in which one may well interrupt
    from bqlib.sweep.words import SweepError

    try:
        load(sweep)
    except SweepError as error:
        sys.exit(str(error))
    from snakemake.cli import main as be_snakemake  # 0.6 s, as above

    be_snakemake()


if __name__ == "__main__":
    # What is loaded and read stays: to look for cycles among it takes 0.3 s of 1.4. Python looks
    # for them again when the first job is to start, see `Run.start`.
    gc.disable()
    try:
        main(sys.argv[2])
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
