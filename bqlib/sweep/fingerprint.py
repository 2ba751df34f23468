"""Fingerprints of code: digests that change with the code that a result depends on."""

import ast
import hashlib
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec, resolve_name
from pathlib import Path
from types import FunctionType


def fingerprint(*objects, files=()):
    """Digest of the definitions of some functions and classes, and of all that they refer to.

    References to functions, classes and constants are followed by name, through all modules of the
    packages that `objects` come from, but not into other packages. ``globals`` refers to all names
    of its module. Names in strings and compiled code are not followed. Comments, docstrings and
    layout do not count, nor does the folder of a file that is a module by itself.

    Parameters
    ----------
    *objects : functions, classes or str
        Defined at the top level of a module, or named as ``"module:name"``.
    files : iterable of str or Path, optional
        Data files that the code reads. Their names and bytes count, but not their folders or order.

    Returns
    -------
    str
        16 hexadecimal digits.
    """
    sources = {}
    for (module, name), source in definitions(*objects).items():
        sources[_portable(module), name, source] = f"{(_portable(module), name)}\n{source}"
    text = "\n".join(sources[key] for key in sorted(sources))
    contents = [(Path(file).name, hashlib.sha256(Path(file).read_bytes())) for file in files]
    text += "".join(sorted(f"\n{name} {content.hexdigest()}" for name, content in contents))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def definitions(*objects):
    """The definitions that enter :func:`fingerprint`: (module, name) to source."""
    todo = [
        tuple(item.split(":")) if isinstance(item, str) else (item.__module__, item.__qualname__)
        for item in objects
    ]
    packages = {module.partition(".")[0] for module, _ in todo}
    sources, seen = {}, set()
    while todo:
        module, name = todo.pop()
        if (module, name) in seen or module.partition(".")[0] not in packages:
            continue
        seen.add((module, name))
        own, imports, starred = _read(module)
        if name in own:
            sources[module, name], references = _source(module, name)
            for first, *attributes in references:
                todo.append((module, first))
                inside = _module_of(*imports[first]) if first in imports else ""
                for attribute in attributes if inside else ():
                    todo.append((inside, attribute))
                    inside = f"{inside}.{attribute}"
        if name in imports:
            todo.append(imports[name])
        elif name not in own:
            todo.extend((other, name) for other in starred)
            if name == "globals":  # all that the module has, by names that are not there to see
                todo.extend((module, other) for other in own)
            if "__getattr__" in own:  # the module loads its names on demand
                found = getattr(import_module(module), name, None)
                if isinstance(found, type | FunctionType):
                    todo.append((found.__module__, found.__qualname__))
    return sources


def _spec_of(module):
    """Where a module is, without importing the packages around it, which takes a second for some.

    ``find_spec`` imports them all.
    """
    package = module.rpartition(".")[0]
    if not package or module in sys.modules:
        return find_spec(module)
    around = _spec_of(package)
    return around and PathFinder.find_spec(module, around.submodule_search_locations or [])


def _portable(module):
    """The name of a module, or of its file if that is a module by itself."""
    spec = _spec_of(module)
    return Path(spec.origin).name if spec.loader is None else module


def _module_of(module, name):
    """The module that ``from module import name`` binds, if it binds one."""
    return f"{module}.{name}" if name else module


@cache
def _read(module):
    """What a module defines and imports at its top level; nothing if it is not a Python file.

    Returns
    -------
    definitions : dict
        Name to its statements.
    imports : dict
        Name to (module, name there), with an empty name for a module itself.
    starred : list of str
        Modules of which all names are imported.
    """
    try:
        spec = _spec_of(module)
    except (ModuleNotFoundError, ValueError):  # an imported object whose attribute is used
        return {}, {}, []
    if spec is None or not (spec.origin or "").endswith(".py"):
        return {}, {}, []
    tree = ast.parse(Path(spec.origin).read_bytes())
    imports, starred = {}, []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            source = _absolute(node, spec)
            starred += [source for a in node.names if a.name == "*"]
            imports |= {a.asname or a.name: (source, a.name) for a in node.names}
        elif isinstance(node, ast.Import):
            for a in node.names:
                name = a.asname or a.name.partition(".")[0]
                imports[name] = (a.name if a.asname else name, "")
    definitions = {}
    for node in tree.body:
        names = _bound(node)
        if isinstance(node, ast.Expr):  # a call such as LIST.append(2) changes what it names
            names = [name for name, *_ in _references(node) if name in definitions]
        for name in dict.fromkeys(names):
            definitions.setdefault(name, []).append(node)
    return definitions, imports, starred


@cache
def _source(module, name):
    """The source of a definition without its comments and docstrings, and what it refers to."""
    statements = _read(module)[0][name]
    source = "\n".join(ast.unparse(_without_docstrings(node)) for node in statements)
    return source, set().union(*map(_references, statements))


def _absolute(node, spec):
    """The module that ``from module import ...`` names."""
    package = spec.name if spec.submodule_search_locations else spec.parent
    return resolve_name("." * node.level + (node.module or ""), package)


def _bound(node):
    """Names that a statement binds."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.Assign():
            return [n.id for t in node.targets for n in ast.walk(t) if isinstance(n, ast.Name)]
        case ast.AnnAssign() | ast.AugAssign():
            return [n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)]
        case ast.If() if ast.unparse(node.test) == "__name__ == '__main__'":
            return []
        case ast.If() | ast.Try() | ast.With() | ast.For() | ast.While():
            return [name for inner in ast.iter_child_nodes(node) for name in _bound(inner)]
        case ast.ExceptHandler():
            return [name for inner in node.body for name in _bound(inner)]
    return []


def _references(node):
    """The names that a node uses, with their attributes: ``(name, attribute, ...)``."""
    found = set()
    for inner in ast.walk(node):
        chain = []
        while isinstance(inner, ast.Attribute):
            chain.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            found.add((inner.id, *reversed(chain)))
    return found


def _without_docstrings(node):
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and ast.get_docstring(inner, clean=False) is not None
        ):
            inner.body = inner.body[1:] or [ast.Pass()]
    return node
