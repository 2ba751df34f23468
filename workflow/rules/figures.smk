# The figures, each drawn by the function of its name in bqlib/figures.


rule figures:
    input:
        expand(
            head(AT.store("{dataset}")),
            dataset=sorted({dataset for datasets in FIGURES.values() for dataset in datasets}),
        ),
    output:
        expand(AT.figure("{figure}", "{suffix}"), figure=FIGURES, suffix=["svg", "png"]),
    log:
        AT.log("figures"),
    benchmark:
        AT.benchmark("figures")
    threads: 2
    params:
        figures=FIGURES,
        code=code_of("bqlib.figures:save", *(f"bqlib.figures.{name}:{name}" for name in FIGURES)),
    script:
        "../scripts/figures.py"
