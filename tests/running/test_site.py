"""Site files: what they mean, and what is said of wrong ones."""

import pytest
import yaml
from jsonschema import Draft202012Validator
from project import PROJECT

from bqlib.running.errors import ClusterError
from bqlib.running.site import SYSTEMS, Site, json_schema, read_site

PROFILES = PROJECT / "profiles"


def site_file(folder, text):
    path = folder / "site.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("profile", ["local", "cluster", "batch"])
def test_the_shipped_site_files_are_read(profile):
    site = read_site(PROFILES / profile / "site.yaml")
    assert site.system == {"local": "local", "cluster": "slurm", "batch": "job"}[profile]


def test_an_empty_key_takes_its_default(tmp_path):
    path = site_file(
        tmp_path, "system: pbs\nworkers: 3\nmemory: 2GiB\nqueue:\ndirectives: [a, b]\n"
    )
    assert read_site(path) == Site(
        system="pbs", workers=3, memory="2GiB", directives=("a", "b"), walltime="01:00:00"
    )


def test_all_problems_of_a_site_file_are_told_with_their_lines(tmp_path):
    wrong = {
        "system: slrum": "is 'slrum'; allowed: slurm, pbs, lsf, sge, oar, htcondor, local, job",
        "workers: 0": "is 0; give a whole number from 1 on",
        "memory: 4": "is 4; give a text",
        "walltime: 1:00": "is '1:00'; give hours, minutes and seconds, such as 01:30:00",
        "queu: short": "unknown key; allowed: system, workers,",
        "directives: --exclusive": "give a list of texts",
        "wait: soon": "give a number of minutes",
    }
    path = site_file(tmp_path, "\n".join(wrong))
    with pytest.raises(ClusterError) as caught:
        read_site(path)
    told = str(caught.value).splitlines()
    for i, (line, problem) in enumerate(wrong.items()):
        assert told[i].startswith(f"{path}:{i + 1}: {line.split(':')[0]}: "), told[i]
        assert problem in told[i]


@pytest.mark.parametrize(
    "text, problem",
    [
        ("system: slurm\nmemory: 1GiB", "workers: missing, and system slurm needs it"),
        ("system: slurm\nworkers: 2", "memory: missing"),
        ("memory: 100MB", "a worker needs at least 512MiB"),
        ("memory: much", "give a number with its unit"),
        ("memory: 1e400GiB", "give a number with its unit"),
        (
            "system: htcondor\nworkers: 1\nmemory: 1GiB\nqueue: a",
            "site.yaml:4: queue: htcondor has",
        ),
        ("system: htcondor\nworkers: 1\nmemory: 1GiB\ndirectives: [a]", "of the form key = value"),
        ("- system", "must be a mapping: write"),
    ],
)
def test_what_is_wrong_with_a_site_is_said(tmp_path, text, problem):
    with pytest.raises(ClusterError, match=r"site\.yaml:") as caught:
        read_site(site_file(tmp_path, text))
    assert problem in str(caught.value)


def test_the_schema_for_editors_accepts_what_is_read_and_finds_mistakes(tmp_path):
    schema = Draft202012Validator(json_schema())
    for path in PROFILES.glob("*/site.yaml"):
        assert schema.is_valid(yaml.safe_load(path.read_text()))
    values = (None, True, 0, 1, 2.5, "4GiB", "01:00:00", "a=b", *SYSTEMS, ["a"], ["a", 1], {"a": 1})
    refused = 0
    for key in (*Site.__dataclass_fields__, "worker"):
        for value in values:
            content = {key: value}
            try:
                read_site(site_file(tmp_path, yaml.safe_dump(content)))
            except ClusterError:
                refused += not schema.is_valid(content)
            else:
                assert schema.is_valid(content), content
    assert refused > 100
