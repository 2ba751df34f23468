# One job for some pieces, each of a cell and a block of seeds. Its process only waits: the run's
# process spreads the trials over the Dask cluster.


BLOCK = "/".join(
    ["{target}", "{kernel}", "{lengthscale}", "{algorithm}", block_name("{first}", "{last}")]
)


# A rule for any one piece, and one for each job of many, which Snakemake prefers. Digests decide
# what is up to date, see dates.smk: so there are no params.
for name, pieces in {"piece": [BLOCK + PIECE], **RUN.batches()}.items():

    rule:
        name:
            name
        output:
            [AT.piece(piece) for piece in pieces],
            [AT.timing(piece) for piece in pieces],
        log:
            AT.log(f"pieces/{BLOCK}" if name == "piece" else name),
        conda:
            "../envs/bqlib.yaml"
        script:
            RUN.script("piece.py")
