# The report of everything, and the manifest: what a run leaves for people and for archives.


rule report:
    input:
        curves=rules.gather.output,
        rates=rules.rates.output,
        figures=rules.figures.output,
        claims=rules.claims.output if OF_THE_PAPER else [],
    output:
        AT.report,
    log:
        AT.log("report"),
    benchmark:
        AT.benchmark("report")
    params:
        figures=[figure.name for figure in FIGURES],
        code=code_of("bqlib.report.html:write_report", files=template_files()),
    script:
        "../scripts/report.py"


rule manifest:
    input:
        rules.report.output,
        rules.report.input,
        rules.figures.input,
        expand(rules.study.output, study=EXPERIMENT.studies),
    output:
        AT.manifest,
        AT.provenance,
    log:
        AT.log("manifest"),
    benchmark:
        AT.benchmark("manifest")
    script:
        "../scripts/manifest.py"
