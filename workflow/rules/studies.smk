# Studies: what the curves of a sweep cannot say. One job each; the run's process spreads its seeds.


rule study:
    output:
        f"{RESULTS}/studies/{{study}}.zarr/zarr.json",
    log:
        f"{RESULTS}/logs/studies/{{study}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/studies/{{study}}.tsv"
    priority: 1  # they take longer than pieces
    params:
        digest=lambda wildcards: EXPERIMENT.study(wildcards.study).digest,
        about=lambda wildcards: EXPERIMENT.study(wildcards.study).about(),
    script:
        "../scripts/study.py"
