# What papers claim and what became of it.


rule claims:
    input:
        curves=rules.gather.output,
        rates=rules.rates.output,
        studies=expand(rules.study.output, study=EXPERIMENT.studies),
    output:
        AT.claims,
        record=AT.record("claims"),
    log:
        AT.log("claims"),
    benchmark:
        AT.benchmark("claims")
    conda:
        "../envs/bqlib.yaml"
    params:
        studies=EXPERIMENT.studies,
        papers=PAPERS,
        made_by=made_by(
            "claims.py",
            "bqlib.claims:evaluate",
            "bqlib.claims:as_json",
            "bqlib.claims:table_1",
            settings=[EXPERIMENT.studies, PAPERS],
        ),
    script:
        RUN.script("claims.py")
