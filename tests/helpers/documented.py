"""Files that a page of docs/ shows: a paragraph that starts with `name`, and the block after it."""

import re

from project import PROJECT

DOCS = PROJECT / "docs"
FILE = re.compile(r"^`(\w+\.\w+)`(?:(?!^```).)*?^```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def documented_files(page):
    """Text of each file by its name; blocks without one are left out."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return {name: body for name, body in FILE.findall(text)}
