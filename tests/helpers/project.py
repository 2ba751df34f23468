"""Where the project's own files are."""

from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent.parent
CONFIG = PROJECT / "config"
QUICK = CONFIG / "quick.yaml"
SHELF = CONFIG / "targets"
