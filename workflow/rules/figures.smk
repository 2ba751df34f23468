# The figures, each drawn by the function of its name in bqlib/figures, page by page.


DATASETS = sorted({dataset for figure in FIGURES for dataset in figure.datasets})
DRAWN = {figure.name: [figure.drawn_by, figure.page, list(figure.datasets)] for figure in FIGURES}
STUDIES = [f"studies/{name}" for name in EXPERIMENT.studies]


rule figures:
    input:
        expand(head(AT.store("{dataset}")), dataset=DATASETS),
        # A study itself says what it was made of.
        expand(AT.record("{dataset}"), dataset=[d for d in DATASETS if d not in STUDIES]),
    output:
        [
            # For those who read them by `snakemake --report`.
            report(
                AT.figure(figure.name, "svg"), category="Figures", labels={"figure": figure.name}
            )
            for figure in FIGURES
        ],
        expand(AT.figure("{name}", "png"), name=[figure.name for figure in FIGURES]),
        record=AT.record("figures"),
    log:
        AT.log("figures"),
    benchmark:
        AT.benchmark("figures")
    conda:
        "../envs/bqlib.yaml"
    threads: 2
    params:
        figures=DRAWN,
        made_by=made_by(
            "figures.py",
            "bqlib.figures.style:save",
            *(
                f"bqlib.figures.{name}:{name}"
                for name in sorted({figure.drawn_by for figure in FIGURES})
            ),
            settings=DRAWN,
        ),
    script:
        RUN.script("figures.py")
