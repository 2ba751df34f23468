# The figures, each drawn by the function of its name in bqlib/figures.


rule figures:
    input:
        expand(
            head(AT.store("{dataset}")),
            dataset=sorted({dataset for figure in FIGURES for dataset in figure.datasets}),
        ),
    output:
        expand(
            AT.figure("{name}", "{suffix}"),
            name=[figure.name for figure in FIGURES],
            suffix=["svg", "png"],
        ),
    log:
        AT.log("figures"),
    benchmark:
        AT.benchmark("figures")
    threads: 2
    params:
        datasets={figure.name: list(figure.datasets) for figure in FIGURES},
        code=code_of(
            "bqlib.figures.style:save",
            *(f"bqlib.figures.{figure.name}:{figure.name}" for figure in FIGURES),
        ),
    script:
        "../scripts/figures.py"
