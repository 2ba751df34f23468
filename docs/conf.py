"""How Sphinx builds these pages: `make docs`. Nothing here or in the pages needs a network."""

import sys
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import bqlib

sys.path.insert(0, str(Path(__file__).parent))  # for the examples of the gallery

project = "bqlib"
author = "The bqlib developers"
copyright = author
release = bqlib.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]

html_theme = "furo"
html_title = f"bqlib {release}"
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say the types, with shapes
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# Other projects' pages are not here to link to, and constants have none.
others = "collections|dask|distributed|inspect|matplotlib|numpy|pathlib|xarray"
nitpick_ignore_regex = [("py:.*", rf"({others})\..*"), ("py:data", ".*")]

plot_include_source = True
plot_formats = [("png", 150)]
plot_html_show_formats = False
plot_html_show_source_link = False


def without_public_names(app, what, name, found, skip, options):
    """Leave out of a module's page what has a page of its own, as `bqlib.NAME`."""
    if what == "module" and name in bqlib.__all__:
        return found is getattr(bqlib, name) or skip
    return skip


def with_bars(app, what, name, obj, options, lines):
    """Take |x| for what it says, and not for the name of a substitution."""
    lines[:] = [line if ">>>" in line else line.replace("|", r"\|") for line in lines]


def find_public(app, env, node, content):
    """Lead from a short name in a docstring, such as `mmd`, to the page of the public one."""
    name = node["reftarget"].rpartition(".")[2]
    if node.get("refdomain") == "py" and name in bqlib.__all__:
        where, domain = node["refdoc"], env.domains.python_domain
        return domain.resolve_xref(env, where, app.builder, "obj", f"bqlib.{name}", node, content)


def visit_math(writer, node):
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_displayed_math(writer, node):
    writer.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


def setup(app):
    # Browsers draw MathML themselves: formulas need neither scripts nor fonts from elsewhere.
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    app.connect("autodoc-process-docstring", with_bars)
    app.connect("missing-reference", find_public)
    app.connect("autodoc-skip-member", without_public_names)
