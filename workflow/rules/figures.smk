# Figures, each from the dataset alone.


rule mmd_figure:
    input:
        rules.gather.output,
    output:
        f"{RESULTS}/figures/mmd.svg",
        f"{RESULTS}/figures/mmd.png",
    log:
        f"{RESULTS}/logs/figures/mmd.log",
    benchmark:
        f"{RESULTS}/benchmarks/figures/mmd.tsv"
    script:
        "../scripts/mmd_figure.py"
