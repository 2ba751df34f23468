# What is up to date, by its record: dates of files decide nothing.

from types import SimpleNamespace


def step(rule, inputs=None, **wildcards):
    """The outputs of a rule's job; `inputs` replaces those of the rule."""
    at = SimpleNamespace(**wildcards)
    return Step(
        made_by=rule.params.made_by(at),
        inputs=tuple(map(Path, rule.input if inputs is None else inputs)),
        outputs=tuple(map(Path, expand(rule.output, **wildcards))),
        record=Path(*expand(rule.output.record, **wildcards)),
        benchmark=Path(*expand(rule.benchmark, **wildcards)),
    )


def steps():
    """The outputs of all rules but pieces, in the order in which they are made."""
    yield from (step(rules.study, study=name) for name in EXPERIMENT.studies)
    yield step(rules.gather, inputs=all_pieces(None))
    others = ["rates", "function_errors", "claims", "figures", "report", "manifest"]
    yield from (step(getattr(rules, name)) for name in others)


RUN.settle(steps())
