import importlib
import subprocess
import sys

import pytest

from bqlib.sweep import registry
from bqlib.sweep.fingerprint import _read, _source, fingerprint

MODULES = {
    "__init__": """
        from importlib import import_module

        def __getattr__(name):
            return getattr(import_module("sample.late"), name)
    """,
    "late": "def lazy(x): return x",
    "starred": "def starred(x): return x",
    "inner.__init__": "from .deep import near",
    "inner.deep": """
        def near(x):
            return x

        def far(x):
            return x + LIST[0]

        LIST = [1]
        LIST.append(2)
        LIST[0] += 3

        if __name__ == "__main__":
            LIST = []
    """,
    "rules": """
        import math
        import sample.inner.deep
        from sample import found, lazy, tools
        from sample.starred import *
        from .inner import near
        from sample.tools import TABLE, half as halved
        PLACES = {"other": "sample.other:thing"}
        SCALE = 2.0
        try:
            import no_such_module
        except ImportError:
            THERE = 0

        def rule(x):
            '''A docstring.'''
            return (
                halved(x) * tools.double(x) * SCALE * math.pi * len(TABLE.keys())
                + near(x) + sample.inner.deep.far(x) + starred(x) + lazy(x) + THERE
                + found.all()
            )

        def unrelated(x):
            return x
    """,
    "tools": """
        TABLE = {"a": 1}

        def half(x):
            return x / _two()

        def _two():
            return 2

        def double(x):
            return 2 * x
    """,
    "found": """
        def one():
            return 1

        def all():
            return [value() for name, value in globals().items() if name == "one"]
    """,
    "other": "def thing(): pass",
}


@pytest.fixture
def digest(tmp_path, monkeypatch):
    """Fingerprint of sample.rules.rule after replacing text in a module."""
    import textwrap

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "sample" / "inner").mkdir(parents=True)

    def after(module=None, old="", new=""):
        for name, text in MODULES.items():
            text = textwrap.dedent(text)
            if name == module:
                assert old in text
                text = text.replace(old, new)
            (tmp_path / "sample" / f"{name.replace('.', '/')}.py").write_text(text)
        _read.cache_clear(), _source.cache_clear()
        for name in [name for name in sys.modules if name.partition(".")[0] == "sample"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        return fingerprint(importlib.import_module("sample.rules").rule)

    yield after
    _read.cache_clear(), _source.cache_clear()


@pytest.mark.parametrize(
    "module, old, new",
    [
        ("rules", "math.pi", "math.e"),
        ("rules", "SCALE = 2.0", "SCALE = 3.0"),
        ("tools", "x / _two()", "x * _two()"),
        ("tools", "return 2\n", "return 3\n"),  # reached through half
        ("tools", "2 * x", "x + x"),  # reached as an attribute of the module
        ("tools", '{"a": 1}', '{"a": 2}'),  # an object that has attributes of its own
        ("rules", "THERE = 0", "THERE = 1"),  # in a block
        ("inner.deep", "return x\n", "return -x\n"),  # through two relative imports
        ("inner.deep", "x + LIST", "x - LIST"),  # through a module's full name
        ("inner.deep", "append(2)", "append(3)"),
        ("inner.deep", "+= 3", "+= 4"),
        ("starred", "return x", "return -x"),
        ("late", "return x", "return -x"),  # through a package's __getattr__
        ("found", "return 1", "return 2"),  # among all that a module has
    ],
)
def test_changes_that_matter_change_it(digest, module, old, new):
    assert digest() != digest(module, old, new)


@pytest.mark.parametrize(
    "module, old, new",
    [
        ("rules", "A docstring.", "Another."),
        ("rules", "return x\n", "return -x\n"),  # in unrelated
        ("rules", "x) *", "x)  * "),
        ("rules", "SCALE = 2.0", "SCALE = 2.0  # a comment"),
        ("other", "pass", "return 1"),  # named only by a string
        ("inner.deep", "LIST = []", "LIST = [0]"),  # not done when it is imported
    ],
)
def test_changes_that_do_not_matter_leave_it(digest, module, old, new):
    assert digest() == digest(module, old, new)


def test_data_files_count_by_name_and_bytes(tmp_path):
    def digest(**contents):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        return fingerprint(fingerprint, files=[folder / name for name in contents])

    before = digest(page=b"<p>", style=b"\xff")
    assert before == digest(style=b"\xff", page=b"<p>")
    others = [
        digest(),
        digest(page=b"<p>"),
        digest(page=b"<p> ", style=b"\xff"),
        digest(page=b"\xff", style=b"<p>"),
        digest(pages=b"<p>", style=b"\xff"),
    ]
    assert len({before, *others}) == 6
    assert digest() == fingerprint(fingerprint)
    with pytest.raises(FileNotFoundError):
        fingerprint(fingerprint, files=[tmp_path / "gone.html"])


def test_designs_do_not_share_a_fingerprint():
    designs = {
        name: fingerprint(registry.find("design", name)) for name in registry.PLACES["design"]
    }
    assert len(set(designs.values())) == len(designs)


def test_what_is_only_read_is_not_imported():
    script = """
import sys
from bqlib.sweep.fingerprint import fingerprint
fingerprint("bqlib.claims:evaluate")
print(sorted({"bqlib.claims", "bqlib.analysis", "xarray"} & set(sys.modules)))
"""
    run = [sys.executable, "-c", script]
    assert subprocess.run(run, check=True, capture_output=True, text=True).stdout == "[]\n"
