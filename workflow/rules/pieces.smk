# One job a cell and block of seeds. Its process only waits: the run's process spreads the trials
# over the Dask cluster.


CELL = "{target}/{kernel}/{lengthscale}/{algorithm}/seeds-{first}-{last}"


rule piece:
    output:
        piece=AT.piece(f"{CELL}.zarr.zip"),
        timing=AT.timing(f"{CELL}.zarr.zip"),
    log:
        AT.log(f"pieces/{CELL}"),
    benchmark:
        AT.benchmark(f"pieces/{CELL}")
    params:
        # Changes with the numbers and the code that this cell depends on, and reruns it then.
        digest=digest_of,
    script:
        "../scripts/piece.py"
