"""Fingerprints of code: a digest that changes when code that a result depends on changes."""

import ast
import hashlib
from functools import cache
from importlib.util import find_spec
from pathlib import Path


def fingerprint(*objects):
    """Digest of the definitions of some functions and classes, and of all they refer to.

    References are followed through every module of the packages that `objects` come from, by
    name: to functions, classes and constants, not into other packages. Names that are looked up
    as strings are not followed. Comments, docstrings and layout do not count.

    Parameters
    ----------
    *objects : functions or classes
        Defined at the top level of their modules.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    todo = [(item.__module__, item.__qualname__) for item in objects]
    packages = {module.partition(".")[0] for module, _ in todo}
    sources = {}
    while todo:
        module, name = todo.pop()
        if (module, name) in sources or module.partition(".")[0] not in packages:
            continue
        definitions, imports = _read(module)
        if name in imports:
            todo.append(imports[name])
            continue
        if name not in definitions:
            continue
        sources[module, name], references = definitions[name]
        todo.extend((module, reference) for reference, attribute in references if not attribute)
        todo.extend(
            (_module_of(*imports[reference]), attribute)
            for reference, attribute in references
            if attribute and reference in imports
        )
    text = "\n".join(f"{place}\n{sources[place]}" for place in sorted(sources))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _module_of(module, name):
    """The module that ``from module import name`` binds, where it binds one."""
    return f"{module}.{name}" if name else module


@cache
def _read(module):
    """Top-level definitions of a module: name to (source, references); and its imports."""
    try:
        place = find_spec(module).origin
    except ModuleNotFoundError:  # an imported object whose attribute is used
        return {}, {}
    tree = ast.parse(Path(place).read_text(encoding="utf-8"))
    definitions, imports = {}, {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            imports |= {a.asname or a.name: (node.module, a.name) for a in node.names}
        elif isinstance(node, ast.Import):
            imports |= {a.asname or a.name: (a.name, "") for a in node.names}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = [node.name]
        elif isinstance(node, ast.Assign):
            names = [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        elif isinstance(node, ast.AnnAssign):
            names = [node.target.id]
        else:
            continue
        definition = (ast.unparse(_without_docstrings(node)), _references(node))
        definitions |= dict.fromkeys(names, definition)
    return definitions, imports


def _references(node):
    """(name, "") for each name that is used, and (name, attribute) for each ``name.attribute``."""
    names = {(n.id, "") for n in ast.walk(node) if isinstance(n, ast.Name)}
    attributes = {
        (n.value.id, n.attr)
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name)
    }
    return names | attributes


def _without_docstrings(node):
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and ast.get_docstring(inner, clean=False) is not None
        ):
            inner.body = inner.body[1:] or [ast.Pass()]
    return node
