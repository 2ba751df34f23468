# The report of everything, and the manifest: what a run leaves for people and for archives.


rule report:
    input:
        curves=rules.gather.output,
        rates=rules.rates.output,
        figures=rules.figures.output,
        claims=rules.claims.output if OF_THE_PAPER else [],
    output:
        f"{RESULTS}/report.html",
    log:
        f"{RESULTS}/logs/report.log",
    benchmark:
        f"{RESULTS}/benchmarks/report.tsv"
    params:
        figures=FIGURES,
        code=code_of("bqlib.report:write_report"),
    script:
        "../scripts/report.py"


rule manifest:
    input:
        rules.report.output,
        expand(rules.study.output, study=EXPERIMENT.studies),
    output:
        f"{RESULTS}/manifest-sha256.txt",
        f"{RESULTS}/provenance.json",
    log:
        f"{RESULTS}/logs/manifest.log",
    benchmark:
        f"{RESULTS}/benchmarks/manifest.tsv"
    script:
        "../scripts/manifest.py"
