# What is up to date, by its record: dates of files decide nothing.


def step(rule, inputs=None):
    """The outputs of a rule's job; `inputs` replaces those of the rule."""
    return Step(
        made_by=rule.params.made_by(None),
        inputs=tuple(map(Path, rule.input if inputs is None else inputs)),
        outputs=tuple(map(Path, rule.output)),
        record=Path(rule.output.record),
        benchmark=Path(rule.benchmark),
    )


def steps():
    """The outputs of all rules with a record, in the order in which they are made."""
    yield step(rules.gather, inputs=all_pieces(None))
    others = ["rates", "function_errors", "claims", "figures", "report", "manifest"]
    yield from (step(getattr(rules, name)) for name in others)


RUN.settle(steps())
