# One job a cell and block of seeds. Its process only waits: the run's process spreads the trials
# over the Dask cluster.


CELL = "{target}/{kernel}/{lengthscale}/{algorithm}/seeds-{first}-{last}"


rule piece:
    output:
        piece=f"{RESULTS}/pieces/{CELL}.zarr.zip",
        timing=f"{RESULTS}/timings/{CELL}.json",
    log:
        f"{RESULTS}/logs/pieces/{CELL}.log",
    benchmark:
        f"{RESULTS}/benchmarks/pieces/{CELL}.tsv"
    params:
        # Changes with the numbers and the code that this cell depends on, and reruns it then.
        digest=digest_of,
    script:
        "../scripts/piece.py"
