import pytest
from project import PROJECT

import bqlib
from bqlib.designs.design import is_point_set
from bqlib.sweep import plugins, registry
from bqlib.sweep.spec import Algorithm
from bqlib.weights import uniform

DOCS = PROJECT / "docs"
PAGES = {
    "target": DOCS / "targets.md",
    "kernel": DOCS / "kernels.md",
    "design": DOCS / "designs.md",
    "weights": DOCS / "weights.md",
    "integrand": DOCS.parent / "config" / "README.md",
}


@pytest.mark.parametrize(
    "kind, name", [(kind, name) for kind, names in registry.PLACES.items() for name in names]
)
def test_every_name_leads_to_something_callable(kind, name):
    found = registry.find(kind, name)
    assert callable(found.measure if kind == "study" else found)


def test_plugins_are_of_the_kinds_that_are_registered():
    assert {*plugins.KINDS, "study"} == set(registry.PLACES)


def test_the_documentation_names_every_group_of_entry_points():
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    assert all(f"`{kind.group}`" in page for kind in plugins.KINDS.values())


@pytest.mark.parametrize("kind", ["target", "kernel", "design"])
def test_what_is_registered_is_public(kind):
    for name in registry.PLACES[kind]:
        found = registry.find(kind, name)
        assert getattr(bqlib, found.__name__) is found


@pytest.mark.parametrize("kind", PAGES)
def test_the_documentation_names_what_is_registered(kind):
    page = PAGES[kind].read_text(encoding="utf-8")
    names = [registry.find(kind, name).__name__ for name in registry.PLACES[kind]]
    assert [name for name in names if f"`{name}" not in page] == []


def test_sets_are_those_that_say_so():
    names = registry.PLACES["design"]
    assert set(registry.SETS) == {n for n in names if is_point_set(registry.find("design", n))}


def test_algorithms_are_made_of_registered_parts():
    for design, weights, *parameters in registry.ALGORITHMS.values():
        assert design in registry.PLACES["design"] and weights in registry.PLACES["weights"]
        takes = plugins.parameters("design", registry.find("design", design))
        assert all(own.keys() <= takes.keys() for own in parameters)


def test_parameters_of_an_algorithm_reach_its_design():
    name = "joint_uniform"
    design, rule = Algorithm(name, *registry.ALGORITHMS[name]).build()
    made = design(bqlib.Uniform([0], [1]), bqlib.Brownian(), 3, rng=0)
    assert made.rule is rule is uniform
    assert sorted(made.points[:, 0]) == pytest.approx([1 / 6, 3 / 6, 5 / 6], abs=1e-4)
