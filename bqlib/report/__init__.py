"""The report of a sweep: one HTML file, and what it says as plain data."""

from pathlib import Path

STYLE = Path(__file__).with_name("report.css")
SCRIPT = Path(__file__).with_name("report.js")
TEMPLATES = Path(__file__).with_name("templates")


def template_files():
    """All files that the look of the report depends on."""
    return [STYLE, SCRIPT, *sorted(TEMPLATES.glob("*.html"))]
