include: "workflow/Snakefile"


rule default:
    default_target: not RUN.is_module
    input:
        rules.all.input,
