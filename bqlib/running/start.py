"""Snakemake, started as by ``python -m snakemake``, but quiet where Ctrl-C ends it at once.

Snakemake answers an interrupt from its first job on. Until then, while it loads and reads the
workflow, one would end in a page of Python's.
"""

import gc
import sys

INTERRUPTED = 130

if __name__ == "__main__":
    # What is loaded and read stays: to look for cycles among it takes 0.3 s of 1.4. Python looks
    # for them again when the first job is to start, see `Run.start`.
    gc.disable()
    try:
        from snakemake.cli import main  # 0.6 s, in which one may well interrupt

        main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
