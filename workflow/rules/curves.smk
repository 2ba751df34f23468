# The dataset of all curves, and what is computed from it.


rule gather:
    input:
        all_pieces,
    output:
        f"{RESULTS}/curves.zarr/zarr.json",
    log:
        f"{RESULTS}/logs/gather.log",
    benchmark:
        f"{RESULTS}/benchmarks/gather.tsv"
    params:
        sweep=SWEEP,
        shelf=SHELF,
        # What is stored of the sweep beside the pieces, such as its title.
        config=EXPERIMENT.canonical(),
        code=code_of("bqlib.store:gather"),
    script:
        "../scripts/gather.py"


rule rates:
    input:
        rules.gather.output,
    output:
        f"{RESULTS}/rates.zarr/zarr.json",
    log:
        f"{RESULTS}/logs/rates.log",
    benchmark:
        f"{RESULTS}/benchmarks/rates.tsv"
    params:
        code=code_of("bqlib.analysis:rates"),
    script:
        "../scripts/rates.py"


rule function_errors:
    input:
        rules.gather.output,
    output:
        f"{RESULTS}/function_errors.zarr/zarr.json",
    log:
        f"{RESULTS}/logs/function_errors.log",
    benchmark:
        f"{RESULTS}/benchmarks/function_errors.tsv"
    params:
        code=code_of("bqlib.analysis:function_errors"),
    script:
        "../scripts/function_errors.py"
