"""Plug-ins: targets, kernels, designs, weight rules and integrands from outside of bqlib.

A plug-in has a place, ``"folder/file.py:name"`` or ``"package.module:name"``. An installed package
may also give it a name of its own, by an entry point in one of :data:`GROUPS`.
"""

import inspect
import os
import re
import sys
import sysconfig
import traceback
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

OURS = str(Path(__file__).parent.parent)  # folder of bqlib
# Kind of plug-in to the group of its entry points.
GROUPS = {
    "target": "bqlib.targets",
    "kernel": "bqlib.kernels",
    "design": "bqlib.designs",
    "weights": "bqlib.weights",
    "integrand": "bqlib.integrands",
}
_WORDS = {
    "target": "a target",
    "kernel": "a kernel",
    "design": "a design",
    "weights": "a weight rule",
    "integrand": "an integrand",
}
# How trials call the functions among them: positional arguments, then keywords.
CALLS = {
    "design": (("target", "kernel", "n"), ("rng", "candidates")),
    "weights": (("embedding", "points"), ()),
    "integrand": (("embedding", "rng"), ()),
}
# Keywords that have a place of their own in a sweep, or none.
_NOT_SET = {
    "kernel": {"target", "lengthscale", "covariance"},
    "design": {"rng", "candidates", "initial", "memory"},
}
# Keys of a sweep that no parameter may be called by.
_RESERVED = {
    "target": {"family", "name", "about", "source", "licence"},
    "kernel": {"family", "shape"},
}


class PluginError(ValueError):
    """A plug-in that is not there, cannot be loaded or does not fit; the message says why."""


def is_place(name):
    """Whether a name says where a plug-in is.

    Examples
    --------
    >>> is_place("mine.py:Banana"), is_place("mypackage.targets:Banana"), is_place("sbq")
    (True, True, False)
    """
    return ":" in name or name.endswith(".py")


def absolute(place, folder):
    """The same place, where the path of a file is taken from `folder` and made absolute.

    Examples
    --------
    >>> absolute("./mine.py:Banana", "/sweeps/first")
    '/sweeps/first/mine.py:Banana'
    """
    where, colon, name = place.rpartition(":")
    if not where.endswith(".py"):
        return place
    return os.path.abspath(os.path.join(folder, where)) + colon + name


def without_folder(place):
    """The same place without the folder of its file: moving a project changes no result.

    Examples
    --------
    >>> without_folder("/sweeps/first/mine.py:Banana"), without_folder("sbq")
    ('mine.py:Banana', 'sbq')
    """
    where, colon, name = place.rpartition(":")
    return os.path.basename(where) + colon + name if where.endswith(".py") else place


@cache
def entry_points(kind):
    """Places by name of the plug-ins of a kind that installed packages offer.

    Where several offer a name, it stands for none: its place is the list of theirs.
    """
    from importlib.metadata import entry_points as installed  # takes a while

    places = {}
    for entry in installed(group=GROUPS[kind]):
        places.setdefault(entry.name, set()).add(entry.value)
    return {name: " or ".join(sorted(several)) for name, several in places.items()}


@cache
def load(kind, place):
    """The class or function at a place.

    Parameters
    ----------
    kind : str
        One of :data:`GROUPS`.
    place : str
        The path of a file is taken from the working directory.

    Raises
    ------
    PluginError
        If it is not there, if loading it fails, or if trials could not call it.
    """
    where, _, name = place.rpartition(":")
    if where.endswith(".py"):
        module = _from_file(os.path.abspath(where))
    elif re.fullmatch(r"\w+(\.\w+)*", where):
        module = _from_package(where)
    else:
        raise PluginError(f'"{place}" is no place: write file.py:name or package.module:name')
    if not hasattr(module, name):
        here = [key for key, found in vars(module).items() if _is_own(found, module)]
        raise PluginError(f'{where} has no "{name}"{_near(name, here)}It has: {_listed(here)}')
    found = getattr(module, name)
    problem = _misfit(kind, found)
    if problem:
        raise PluginError(f"{without_folder(place)} {problem}")
    return found


def kind_of(place):
    """The kind of the plug-in at a place, by what it looks like.

    Raises
    ------
    PluginError
        As :func:`load`, and where it looks like none.
    """
    problems = []
    for kind in GROUPS:
        try:
            load(kind, place)
            return kind
        except PluginError as error:
            problems.append((kind, str(error)))
    if len({problem for _, problem in problems}) == 1:
        raise PluginError(problems[0][1])
    raise PluginError(
        f"{without_folder(place)} is no plug-in:\n"
        + "\n".join(f"- {_WORDS[kind]}? {problem}" for kind, problem in problems)
    )


def parameters(kind, function):
    """What a sweep may set of a class or function, by name, as :class:`inspect.Parameter`."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, AttributeError):  # annotations with names that are there for checkers only
        signature = inspect.signature(function)
    positional, _ = CALLS.get(kind, ((), ()))
    named = list(signature.parameters.values())[len(positional) :]
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    left_out = _NOT_SET.get(kind, ())
    return {p.name: p for p in named if p.kind not in several and p.name not in left_out}


def told(error):
    """What went wrong in a plug-in's code, in one line, with the place where it did."""
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}: {error.msg}"
    text = " ".join(str(error).split())
    libraries = (OURS, *map(sysconfig.get_path, ("stdlib", "purelib")))
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((*libraries, "<"))]
    if isinstance(error, ValueError | TypeError) and not own:
        return text
    if isinstance(error, ValueError) and own[-1] is frames[-1]:  # raised to be read
        return text
    place = f" in {os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}{place}: {text}"


def _from_file(path):
    """The module of a file, loaded once in a process."""
    stem = re.sub(r"\W", "_", Path(path).stem)
    name = f"{stem}_{sha256(path.encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    try:
        source = Path(path).read_bytes()
    except FileNotFoundError:
        near = [file.name for file in Path(path).parent.glob("*.py")]
        raise PluginError(
            f"there is no file {path}{_near(Path(path).name, near)}"
            "Every machine of a run must see it under this path"
        ) from None
    except OSError as error:
        raise PluginError(f"{path} cannot be read: {error.strerror}") from None
    module = ModuleType(name)
    # No loader: there is no compiled copy that could be older than the file.
    module.__file__, module.__spec__ = path, ModuleSpec(name, None, origin=path)
    sys.modules[name] = module
    try:
        exec(compile(source, path, "exec"), vars(module))
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        also = ""
        if isinstance(error, ModuleNotFoundError):
            also = ". A file can import what is installed; write several files as a package"
        raise PluginError(f"{path} cannot be loaded: {told(error)}{also}") from error
    return module


def _from_package(where):
    try:
        return import_module(where)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{where}.".startswith(f"{error.name}."):
            raise PluginError(
                f"there is no module {error.name} in this environment: install its package, or "
                f"name a file with its ending, as in ./{where.replace('.', '/')}.py:name"
            ) from None
        raise PluginError(f"{where} cannot be loaded: {told(error)}") from error


def _is_own(found, module):
    return callable(found) and getattr(found, "__module__", "") == module.__name__


def _near(name, names):
    near = get_close_matches(name, names, n=1)
    return f'; did you mean "{near[0]}"? ' if near else ". "


def _listed(names):
    public = [name for name in names if not name.startswith("_")]
    return ", ".join(public) or "nothing that could be one"


def _article(found):
    if inspect.isclass(found):
        return "a class"
    return "a function" if inspect.isfunction(found) else f"of type {type(found).__name__}"


def _misfit(kind, found):
    """Why something cannot be a plug-in of a kind, or an empty text."""
    if kind in CALLS:
        positional, keywords = CALLS[kind]
        call = ", ".join((*positional, *(f"{keyword}=" for keyword in keywords)))
        wanted = f"{_WORDS[kind]} must be a function({call}, ...)"
        if not inspect.isfunction(found):
            return f"is {_article(found)}; {wanted}"
        takes = inspect.signature(found).parameters
        if tuple(takes)[: len(positional)] != positional or not takes.keys() >= set(keywords):
            return f"takes ({', '.join(takes)}); {wanted}"
    else:
        from bqlib.kernels import Kernel

        if not inspect.isclass(found):
            return f"is {_article(found)}; {_WORDS[kind]} must be a class"
        if issubclass(found, Kernel) != (kind == "kernel"):
            if kind == "target":
                return "is a kernel and no target"
            return "is no subclass of bqlib.kernels.Kernel, as a kernel must be"
    if "." in found.__qualname__:
        return (
            f"was made in {found.__qualname__}; write it as a def or class of its own at the top "
            "level of its module, so that changes to its code are seen"
        )
    taken = sorted(_RESERVED.get(kind, {"family"}) & set(parameters(kind, found)))
    if taken:
        return f"has parameters that a sweep has other uses for: rename {', '.join(taken)}"
    return ""
