"""Files and blocks of code that a page of docs/ shows."""

import re

from project import PROJECT

DOCS = PROJECT / "docs"
FILE = re.compile(r"^`(\w+\.\w+)`(?:(?!^```).)*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(
    r"(<!-- not run: .+? -->\s*)?^```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def documented_files(page):
    """Text of each file by its name: a paragraph that starts with it, and the block after it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return {name: body for name, body in FILE.findall(text)}


def blocks(page):
    """Language, code and line of each block that is to be run."""
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        skipped, language, code = found.groups()
        if not skipped:
            yield language, code, text[: found.start(3)].count("\n")
