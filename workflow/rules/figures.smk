# The figures, each drawn by the function of its name in bqlib/figures.


rule figures:
    input:
        expand(
            f"{RESULTS}/{{dataset}}.zarr/zarr.json",
            dataset=sorted({dataset for datasets in FIGURES.values() for dataset in datasets}),
        ),
    output:
        expand(f"{RESULTS}/figures/{{figure}}.{{suffix}}", figure=FIGURES, suffix=["svg", "png"]),
    log:
        f"{RESULTS}/logs/figures.log",
    benchmark:
        f"{RESULTS}/benchmarks/figures.tsv"
    threads: 2
    params:
        figures=FIGURES,
        code=code_of("bqlib.figures:save", *(f"bqlib.figures.{name}:{name}" for name in FIGURES)),
    script:
        "../scripts/figures.py"
