include: "workflow/Snakefile"


rule default:
    input:
        rules.all.input,
    default_target: True
