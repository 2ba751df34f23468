"""The files that come with bqlib: the workflow, its profiles, sweeps and named targets."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
# Inside an installed package; a checkout has them beside it.
PROJECT = _PACKAGE / "project" if (_PACKAGE / "project").is_dir() else _PACKAGE.parent
SNAKEFILE = PROJECT / "Snakefile"
PROFILES = PROJECT / "profiles"
DEFAULT_SWEEP = PROJECT / "config" / "config.yaml"
SUITE_SWEEP = PROJECT / "config" / "suite.yaml"
TARGETS = PROJECT / "config" / "targets"
SUITES = PROJECT / "config" / "suites"  # problems of the benchmark suite
SCHEMAS = PROJECT / "config" / "schemas"  # by which editors complete sweeps and site files
TEMPLATE = PROJECT / "workflow" / "template"  # of a project of one's own
