# One job a cell and block of seeds. Its process only waits: the run's process spreads the trials
# over the Dask cluster.


BLOCK = "/".join(
    ["{target}", "{kernel}", "{lengthscale}", "{algorithm}", block_name("{first}", "{last}")]
)


rule piece:
    output:
        piece=AT.piece(BLOCK + PIECE),
        timing=AT.timing(BLOCK + PIECE),
    log:
        AT.log(f"pieces/{BLOCK}"),
    benchmark:
        AT.benchmark(f"pieces/{BLOCK}")
    conda:
        "../envs/bqlib.yaml"
    params:
        # Changes with the numbers and the code that this cell depends on, and reruns it then.
        digest=digest_of,
    script:
        RUN.script("piece.py")
