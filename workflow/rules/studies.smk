# Studies: what the curves of a sweep cannot say. One job each; the run's process spreads its seeds.


def made_by_study(wildcards):
    study = EXPERIMENT.study(wildcards.study)
    return digest([study.digest, study.about()])


rule study:
    output:
        head(AT.study("{study}")),
        record=AT.record("studies/{study}"),
    log:
        AT.log("studies/{study}"),
    benchmark:
        AT.benchmark("studies/{study}")
    priority: 1  # they take longer than pieces
    params:
        digest=lambda wildcards: EXPERIMENT.study(wildcards.study).digest,
        about=lambda wildcards: EXPERIMENT.study(wildcards.study).about(),
        # Not its script: a study may take hours.
        made_by=made_by_study,
    script:
        "../scripts/study.py"
