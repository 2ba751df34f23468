"""How Sphinx builds these pages: `make docs`. Nothing here or in the pages needs a network."""

import sys
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from jupyter_client import KernelManager
from sphinx.util.docutils import SphinxDirective

import bqlib
from bqlib.cli.main import COMMANDS

sys.path.insert(0, str(Path(__file__).parent))  # for the examples of the gallery

project = "bqlib"
author = "The bqlib developers"
copyright = author
release = bqlib.__version__

extensions = [
    "matplotlib.sphinxext.plot_directive",
    "myst_nb",  # with the pages in Markdown
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinxcontrib.bibtex",
]
# The last is a part of another page.
exclude_patterns = ["_build", "jupyter_execute", "_templates", "claims.md", "claims_hayakawa.md"]
templates_path = ["_templates"]

smartquotes_action = "q"  # two hyphens start an option, and are no dash

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_title = f"bqlib {release}"
html_copy_source = False
html_show_sphinx = False
html_math_renderer = "mathml"

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

# Notebooks run at each build, so that no output on a page is old.
nb_execution_mode = "force"
nb_execution_timeout = 60
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_output_stderr = "remove"  # bars of progress, a line for each step
nb_ipywidgets_js = {}  # scripts from elsewhere
# Other users of the machine cannot read along, and the kernel does not warn that they can.
KernelManager.transport_encryption.default_value = "auto"

bibtex_bibfiles = ["references.bib"]
bibtex_reference_style = "author_year"

# Not on what programs print.
copybutton_selector = "div[class*=highlight-]:not(.highlight-text, .highlight-output) pre"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

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
    """Leave out of a module's page what has a page of its own, as `bqlib.NAME`, or comes from
    matplotlib, whose docstrings need its own Sphinx."""
    if (getattr(found, "__module__", None) or "").startswith("matplotlib."):
        return True
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


HOW_MANY = {"?": ", optional", "*": ", any number", "+": ", one or more"}


class CommandHelp(SphinxDirective):
    """What the help of a command of ``bqlib`` says, from the same records as the parser."""

    required_arguments = 1

    def run(self):
        self.env.note_reread()  # the code can change when the page does not
        (command,) = (c for c in COMMANDS if c.name == self.arguments[0])
        about = nodes.paragraph("", command.about)
        examples = "\n".join(command.examples)
        arguments = nodes.definition_list(classes=["arguments"])
        for name, keywords in command.arguments:
            shown = keywords.get("metavar") or "|".join(keywords.get("choices", [name]))
            if name.startswith("-") and keywords.get("action") != "store_true":
                shown = f"{name} {keywords.get('metavar', name.strip('-').upper())}"
            term = nodes.term("", "", nodes.literal(shown, shown))
            term += nodes.Text(HOW_MANY.get(keywords.get("nargs"), ""))
            help_ = nodes.definition("", nodes.paragraph("", keywords["help"]))
            arguments += nodes.definition_list_item("", term, help_)
        return [about, nodes.literal_block(examples, examples, language="sh"), arguments]


def with_labels(app, doctree, page):
    """Write the head of a column into each of its cells, for screens too narrow for columns."""
    for table in doctree.findall(nodes.table):
        heads = [
            entry for head in table.findall(nodes.thead) for entry in head.findall(nodes.entry)
        ]
        if len(heads) < 3:  # two columns fit
            continue
        table["classes"].append("stacked")
        for row in next(table.findall(nodes.tbody)).children:
            for head, cell in list(zip(heads, row.children, strict=True))[1:]:
                if not cell.astext():
                    cell["classes"].append("empty")
                elif head.astext():
                    label = nodes.inline("", "", *head.deepcopy()[0].children, classes=["column"])
                    cell[0].insert(0, label)


def with_description(app, page, template, context, doctree):
    """Tell search engines what a page is for: its first paragraph does."""
    first = doctree and next(doctree.findall(nodes.paragraph), None)
    if first:
        text = escape(" ".join(first.astext().split()))
        context["metatags"] += f'\n<meta name="description" content="{text}">'


def visit_math(writer, node):
    writer.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_displayed_math(writer, node):
    # Not `display` alone: browsers take limits and large signs from the style.
    formula = tex2mathml(node.astext(), as_block=True).replace(
        "<math ", '<math displaystyle="true" ', 1
    )
    writer.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def setup(app):
    # Browsers draw MathML themselves: formulas need neither scripts nor fonts from elsewhere.
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displayed_math, None))
    app.add_directive("command", CommandHelp)
    app.connect("doctree-resolved", with_labels)
    app.connect("html-page-context", with_description)
    app.connect("autodoc-process-docstring", with_bars)
    app.connect("missing-reference", find_public)
    app.connect("autodoc-skip-member", without_public_names)
