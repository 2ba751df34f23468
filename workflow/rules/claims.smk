# What the paper claims and what became of it.


rule claims:
    input:
        curves=rules.gather.output,
        rates=rules.rates.output,
        studies=expand(rules.study.output, study=EXPERIMENT.studies),
    output:
        AT.claims,
    log:
        AT.log("claims"),
    benchmark:
        AT.benchmark("claims")
    params:
        studies=EXPERIMENT.studies,
        code=code_of("bqlib.claims:evaluate", "bqlib.claims:as_json", "bqlib.claims:table_1"),
    script:
        "../scripts/claims.py"
