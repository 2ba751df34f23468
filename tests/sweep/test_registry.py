import pytest

from bqlib.sweep import registry


@pytest.mark.parametrize(
    "kind, name", [(kind, name) for kind, names in registry.PLACES.items() for name in names]
)
def test_every_name_leads_to_something_callable(kind, name):
    found = registry.find(kind, name)
    assert callable(found.measure if kind == "study" else found)


def test_algorithms_are_made_of_registered_parts():
    for design, weights in registry.ALGORITHMS.values():
        assert design in registry.PLACES["design"] and weights in registry.PLACES["weights"]
