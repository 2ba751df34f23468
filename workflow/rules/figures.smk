# Figures, each drawn by the function of its name in bqlib/figures.


rule figure:
    input:
        lambda wildcards: [f"{RESULTS}/{name}.zarr/zarr.json" for name in FIGURES[wildcards.figure]],
    output:
        f"{RESULTS}/figures/{{figure}}.svg",
        f"{RESULTS}/figures/{{figure}}.png",
    log:
        f"{RESULTS}/logs/figures/{{figure}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/figures/{{figure}}.tsv"
    script:
        "../scripts/figure.py"
