# The dataset of all curves, and what is computed from it.


rule gather:
    input:
        all_pieces,
    output:
        head(AT.curves),
    log:
        AT.log("gather"),
    benchmark:
        AT.benchmark("gather")
    params:
        sweep=RUN.paths.sweep,
        shelf=RUN.paths.shelf,
        # What is stored of the sweep beside the pieces, such as its title.
        config=EXPERIMENT.canonical(),
        code=code_of("bqlib.results.store:gather"),
    script:
        "../scripts/gather.py"


rule rates:
    input:
        rules.gather.output,
    output:
        head(AT.rates),
    log:
        AT.log("rates"),
    benchmark:
        AT.benchmark("rates")
    params:
        code=code_of("bqlib.analysis.fits:fit_rates"),
    script:
        "../scripts/rates.py"


rule function_errors:
    input:
        rules.gather.output,
    output:
        head(AT.function_errors),
    log:
        AT.log("function_errors"),
    benchmark:
        AT.benchmark("function_errors")
    params:
        code=code_of("bqlib.analysis.function_errors:function_errors"),
    script:
        "../scripts/function_errors.py"
