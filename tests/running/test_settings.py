"""What --config and profiles may set beside a sweep."""

from pathlib import Path

import pytest

from bqlib.running.errors import RunError
from bqlib.running.settings import refuse_settings, site_file, sweep_file
from bqlib.sweep import shipped


def test_every_key_but_site_is_refused_by_name_and_so_are_several_sweeps():
    refuse_settings({"site": "s.yaml"}, [Path("one.yaml")])
    with pytest.raises(RunError) as caught:
        refuse_settings(
            {"seeds": 50, "site": "s.yaml", "name": "x"}, [Path("one.yaml"), Path("two.yaml")]
        )
    several, seeds, name = str(caught.value).splitlines()
    assert several.startswith("--configfile one.yaml two.yaml: Snakemake would merge these files")
    assert seeds.startswith("--config seeds=50: has no effect")
    assert name.startswith("--config name=x: has no effect")
    assert name.endswith("write it into two.yaml")


def test_a_site_of_the_profile_is_not_lost(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    project = tmp_path / "project"
    site = project / "profiles" / "local" / "site.yaml"
    site.parent.mkdir(parents=True)
    site.write_text("")
    assert site_file({}, dict, project) == site
    own = Path("profiles", "local", "site.yaml")  # in the working directory: it comes first
    own.parent.mkdir(parents=True)
    own.write_text("")
    assert site_file({}, dict, project) == own
    with pytest.raises(RunError, match=r"would be lost: add site=cluster/site.yaml to --config"):
        site_file({}, lambda: {"site": "cluster/site.yaml"}, project)
    assert site_file({"site": str(site)}, lambda: 1 / 0, Path("elsewhere")) == site


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("none.yaml", "there is no site file /project/none.yaml, nor one in"),
        ("/none.yaml", "there is no site file /none.yaml"),
        (5, "must be the path of a site file"),
        (None, "must be the path of a site file"),
    ],
)
def test_a_site_must_be_a_file(name, told):
    with pytest.raises(RunError) as caught:
        site_file({"site": name}, dict, Path("/project"))
    assert str(caught.value).startswith(f"--config site={name}: {told}")


def test_a_sweep_is_found_by_its_name_in_config_here_or_of_bqlib(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert sweep_file("suite") == shipped.DEFAULT_SWEEP.parent / "suite.yaml"
    own = tmp_path / "config" / "suite.yaml"
    own.parent.mkdir()
    own.touch()
    assert sweep_file("suite") == own.relative_to(tmp_path)
    for path in ("suite.yaml", "nothing", "a/suite", "../suite", "/suite"):
        assert sweep_file(path) == Path(path)
    (tmp_path / "suite").touch()
    assert sweep_file("suite") == Path("suite")
