# Studies: what the curves of a sweep cannot say. One job each; the run's process spreads its seeds.


rule study:
    output:
        head(AT.study("{study}")),
    log:
        AT.log("studies/{study}"),
    benchmark:
        AT.benchmark("studies/{study}")
    priority: 1  # they take longer than pieces
    conda:
        "../envs/bqlib.yaml"
    params:
        digest=lambda wildcards: EXPERIMENT.study(wildcards.study).digest,
        about=lambda wildcards: EXPERIMENT.study(wildcards.study).about(),
    script:
        RUN.script("study.py")
