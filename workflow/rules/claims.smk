# What the paper claims and what became of it, and the report of everything.


rule claims:
    input:
        curves=rules.gather.output,
        rates=rules.rates.output,
        studies=expand(rules.study.output, study=EXPERIMENT.studies),
    output:
        f"{RESULTS}/claims.json",
    log:
        f"{RESULTS}/logs/claims.log",
    benchmark:
        f"{RESULTS}/benchmarks/claims.tsv"
    params:
        studies=EXPERIMENT.studies,
    script:
        "../scripts/claims.py"


rule report:
    input:
        curves=rules.gather.output,
        rates=rules.rates.output,
        figures=rules.figures.output,
        claims=rules.claims.output if JUDGED else [],
    output:
        f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.tsv"
    params:
        figures=FIGURES,
    script:
        "../scripts/report.py"
