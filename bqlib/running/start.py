"""Snakemake, started as by ``python -m snakemake``, but quiet where Ctrl-C ends it at once.

Snakemake answers an interrupt from its first job on. Until then, while it loads and reads the
workflow, one would end in a page of Python's.
"""

import sys

INTERRUPTED = 130

if __name__ == "__main__":
    try:
        from snakemake.cli import main  # 0.6 s, in which one may well interrupt

        main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
