"""The sweep that an importing Snakefile gives to its module."""

import re
from pathlib import Path

import pytest
from checkout import SWEEP as TEXT
from snakemake.common.configfile import load_configfile
from snakemake.utils import update_config

from bqlib.running.errors import RunError
from bqlib.running.module import refuse_another, refuse_moved_outputs, stated_sweep
from bqlib.sweep import yamlfile
from bqlib.sweep.file import load
from bqlib.sweep.words import SweepError

KEYS = yamlfile.value(TEXT)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a sweep file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "small.yaml").write_text(TEXT)
    return tmp_path


def stated(config, whole=None, files=(), given=None):
    whole = config if whole is None else whole
    return stated_sweep(config, whole, files, given or {}, load_configfile)


def merged(*files):
    """The config of a workflow with several config files, as Snakemake merges them."""
    whole = {}
    for file in files:
        update_config(whole, load_configfile(file))
    return whole


def test_a_sweep_is_a_path_a_mapping_or_the_keys_among_those_of_others(folder):
    assert stated({"sweep": "config/small.yaml", "samples": ["a"]}) == Path("config/small.yaml")
    expected = load("config/small.yaml").canonical()
    for config in ({"sweep": dict(KEYS), "samples": 1}, KEYS | {"samples": 1, "site": "s.yaml"}):
        found = stated(config)
        assert found.experiment().canonical() == expected
        assert load(found.written(), found.shelf, found.folder).canonical() == expected
        assert found.written().parent == folder / ".snakemake" / "bqlib"


def test_a_config_file_with_a_sweep_is_read_as_a_sweep_file(folder):
    ours = TEXT.replace("[0.5]", "[5e-1]").replace("[iid", "[own.py:iid_2, iid")  # a text to PyYAML
    file = folder / "config" / "config.yaml"
    file.write_text(f"samples: [a]\n{ours}sampled: 010\n")
    (folder / "config" / "targets").mkdir()
    (folder / "config" / "targets" / "t.json").write_text("{}")
    whole = merged(file)
    found = stated(whole, whole, [file])
    assert found.tree["lengthscales"] == [0.5] and set(found.tree) == set(KEYS)
    assert found.folder == file.parent and found.shelf == file.parent / "targets"
    with pytest.raises(SweepError) as caught:
        found.experiment()
    line = file.read_text().splitlines().index("algorithms: [own.py:iid_2, iid, herding]") + 1
    assert f'{file}:{line}: algorithms[0]: unknown algorithm "own.py:iid_2"' in str(caught.value)


def test_a_part_of_a_config_file_keeps_its_lines(folder):
    file = folder / "config" / "config.yaml"
    indented = TEXT.replace("\n", "\n    ").rstrip().replace("n: 20", "n: 0")
    file.write_text(f"sweeps:\n  first:{indented}\n")
    whole = merged(file)
    with pytest.raises(SweepError, match=rf"{file}:10: n: must be"):
        stated({"sweep": whole["sweeps"]["first"]}, whole, [file]).experiment()


def test_a_mapping_that_python_made_is_named_by_its_keys(folder):
    with pytest.raises(SweepError) as caught:
        stated({"sweep": KEYS | {"n": 0, "seedz": 3}}).experiment()
    first, second = str(caught.value).splitlines()
    assert first.startswith("config.sweep: n: must be")
    assert second.startswith('config.sweep: seedz: unknown key "seedz"; did you mean "seeds"?')
    with pytest.raises(RunError, match="is not one that a file can state: Object of type set"):
        stated({"sweep": KEYS | {"seeds": {3}}})


def test_what_python_changed_after_reading_is_what_is_run(folder):
    file = folder / "config" / "small.yaml"
    whole = merged(file)
    whole["seeds"] = 7
    assert stated(whole, whole, [file]).experiment().seeds == 7


def test_two_config_files_do_not_make_up_one_sweep(folder):
    first, second = folder / "config" / "small.yaml", folder / "config" / "more.yaml"
    second.write_text("seeds: 50\n")
    whole = merged(first, second)
    with pytest.raises(RunError) as caught:
        stated(whole, whole, [first, second])
    assert re.match("config files config/small.yaml config/more.yaml: .*merges", str(caught.value))
    assert 'with config: {"sweep": "FILE"}' in str(caught.value)
    second.write_text("samples: [a]\n")  # of the other workflow
    whole = merged(first, second)
    assert stated(whole, whole, [first, second, first]).experiment().seeds == 2
    nested, more = folder / "nested.yaml", folder / "more.yaml"
    nested.write_text(f"bq:{TEXT}".replace("\n", "\n  ").rstrip())
    more.write_text("bq: {seeds: 50}")
    whole = merged(nested, more)
    for config in (whole["bq"], {"sweep": whole["bq"]}):
        with pytest.raises(RunError, match=r"config files nested\.yaml more\.yaml: "):
            stated(config, whole, [nested, more])


def test_the_command_changes_no_key_of_a_sweep(folder):
    file = folder / "config" / "small.yaml"
    whole = merged(file) | {"seeds": 50, "colour": "red"}
    with pytest.raises(RunError, match=r"--config seeds: .* no file states. Write it into config/"):
        stated(whole, whole, [file], {"seeds": 50, "colour": "red"})


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ({}, "config holds no sweep: write config: "),
        ({"swep": "a.yaml"}, 'config holds no sweep; "swep" may be meant as "sweep": write'),
        ({"sweep": "none.yaml"}, "config sweep=none.yaml: there is no such file in /"),
        ({"sweep": 5}, "config sweep: must be the path of a sweep file or a mapping, not 5"),
        (KEYS | {"candidate": {}, "candidates": {}}, None),
        ({k: v for k, v in KEYS.items() if k != "candidates"} | {"candidate": {}},
         'config candidate: unknown key "candidate"; did you mean "candidates"? If it is a key of'),
        ({"sweep": KEYS, "sites": "s.yaml"}, 'config sites: unknown key "sites"; did you mean'),
        ({"sweep": KEYS, "seed": 1, "title_": "of theirs"}, None),
    ],
)  # fmt: skip
def test_a_key_close_to_one_of_ours_that_is_missing_is_refused(folder, config, told):
    if told is None:
        assert stated(config).experiment().seeds == 2
    else:
        with pytest.raises(RunError) as caught:
            stated(config)
        assert str(caught.value).startswith(told)


def test_a_file_of_another_sweep_is_written_anew(folder):
    written = stated({"sweep": dict(KEYS)}).written()
    right = written.read_bytes()
    written.write_bytes(right.replace(b"small", b"other"))
    assert stated({"sweep": dict(KEYS)}).written().read_bytes() == right
    written.unlink()
    written.symlink_to("config/small.yaml")
    assert stated({"sweep": dict(KEYS)}).written().read_bytes() == right
    assert not written.is_symlink()
    written.unlink()
    written.mkdir()
    with pytest.raises(RunError, match=r"cannot be written .*remove it"):
        stated({"sweep": dict(KEYS)}).written()


@pytest.mark.parametrize("config", ["small.yaml", ["small.yaml"], None, 3])
def test_a_config_that_is_no_mapping_is_refused(folder, config):
    with pytest.raises(RunError, match="config of the module: must be a mapping, as"):
        stated(config, {})


def test_moved_outputs_are_refused_by_name():
    refuse_moved_outputs([(None, None), (None, None)])
    with pytest.raises(RunError, match=r"module with prefix: it would move the outputs .* Leave"):
        refuse_moved_outputs([(None, None), ("theirs/", None)])
    with pytest.raises(RunError, match="module with replace_prefix: "):
        refuse_moved_outputs([(None, {"results/": "theirs/"})])


def test_another_sweep_of_the_same_name_is_refused():
    one, same, other = (
        stated({"sweep": KEYS | {"seeds": seeds}}, {}).experiment() for seeds in (2, 2, 3)
    )
    refuse_another(same, one, "results/small")
    with pytest.raises(RunError, match=r"the name small, so that .* go to results/small: give one"):
        refuse_another(other, one, "results/small")
