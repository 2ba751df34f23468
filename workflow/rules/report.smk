# The report of everything, and the manifest: what a run leaves for people and for archives.


rule report:
    input:
        curves=rules.gather.output,
        rates=rules.rates.output,
        figures=rules.figures.output,
        claims=rules.claims.output if PAPERS else [],
    output:
        AT.report,
        record=AT.record("report"),
    log:
        AT.log("report"),
    benchmark:
        AT.benchmark("report")
    conda:
        "../envs/bqlib.yaml"
    params:
        figures=[figure.name for figure in FIGURES],
        made_by=made_by(
            "report.py",
            "bqlib.report.html:write_report",
            files=template_files(),
            settings=[figure.name for figure in FIGURES],
        ),
    script:
        RUN.script("report.py")


rule manifest:
    input:
        rules.report.output,
        rules.report.input,
        rules.figures.input,
        expand(rules.study.output, study=EXPERIMENT.studies),
    output:
        AT.manifest,
        AT.provenance,
        record=AT.record("manifest"),
    log:
        AT.log("manifest"),
    benchmark:
        AT.benchmark("manifest")
    conda:
        "../envs/bqlib.yaml"
    params:
        made_by=made_by("manifest.py", "bqlib.results.integrity:write_manifest"),
    script:
        RUN.script("manifest.py")
