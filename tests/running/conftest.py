"""Programs of batch systems that stand in for the real ones."""

import os

import pytest


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Makes a shell script of a name that is found before all others."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def make(name, *lines):
        (programs / name).write_text("\n".join(["#!/bin/sh", *lines]))
        (programs / name).chmod(0o755)

    return make
