# The dataset of all curves, and what is computed from it.


rule gather:
    input:
        all_pieces,
    output:
        head(AT.curves),
        record=AT.record("curves"),
    log:
        AT.log("gather"),
    benchmark:
        AT.benchmark("gather")
    conda:
        "../envs/bqlib.yaml"
    params:
        made_by=made_by(
            "gather.py",
            "bqlib.results.store:gather",
            # What is stored of the sweep beside the pieces, such as its title.
            settings=EXPERIMENT.canonical(folders=False),
        ),
    script:
        RUN.script("gather.py")


rule rates:
    input:
        rules.gather.output,
    output:
        head(AT.rates),
        record=AT.record("rates"),
    log:
        AT.log("rates"),
    benchmark:
        AT.benchmark("rates")
    conda:
        "../envs/bqlib.yaml"
    params:
        made_by=made_by("rates.py", "bqlib.analysis.fits:fit_rates"),
    script:
        RUN.script("rates.py")


rule function_errors:
    input:
        rules.gather.output,
    output:
        head(AT.function_errors),
        record=AT.record("function_errors"),
    log:
        AT.log("function_errors"),
    benchmark:
        AT.benchmark("function_errors")
    conda:
        "../envs/bqlib.yaml"
    params:
        made_by=made_by("function_errors.py", "bqlib.analysis.function_errors:function_errors"),
    script:
        RUN.script("function_errors.py")
