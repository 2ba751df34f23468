"""Plug-ins: targets, kernels, designs, weight rules and integrands from outside bqlib.

The place of a plug-in is ``"folder/file.py:name"`` or ``"package.module:name"``. An installed
package can also give it a name, by an entry point in the group that :data:`KINDS` lists.
"""

import inspect
import os
import re
import stat
import sys
import sysconfig
import traceback
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

PLACE = re.compile(r":|\.py$")  # what the place of a plug-in has, and no name
OURS = str(Path(__file__).parent.parent)  # folder of bqlib
# Keys of a target file that are texts for readers and do not affect results.
FREE_TEXT = ("name", "about", "source", "licence")


@dataclass(frozen=True)
class Kind:
    """What sweeps need to know of one kind of plug-in.

    Attributes
    ----------
    noun : str
        With its article, for messages.
    named : str
        What a name in a sweep stands for, for messages.
    group : str
        Of entry points.
    positional, keywords : tuple of str
        Arguments that trials give to a function of this kind. Both are empty if it is a class.
    not_set : tuple of str
        Parameters that a sweep cannot set, because trials set them or nobody does.
    reserved : tuple of str
        Keys of a sweep that no parameter may have as its name.
    """

    noun: str
    named: str
    group: str
    positional: tuple = ()
    keywords: tuple = ()
    not_set: tuple = ()
    reserved: tuple = ("family",)


KINDS = {
    "target": Kind(
        noun="a target",
        named="target family",
        group="bqlib.targets",
        reserved=("family", *FREE_TEXT),
    ),
    "kernel": Kind(
        noun="a kernel",
        named="kernel family",
        group="bqlib.kernels",
        not_set=("target", "lengthscale", "covariance"),
        reserved=("family", "shape"),
    ),
    "design": Kind(
        noun="a design",
        named="design",
        group="bqlib.designs",
        positional=("target", "kernel", "n"),
        keywords=("rng", "candidates"),
        not_set=("rng", "candidates", "initial", "memory"),
    ),
    "weights": Kind(
        noun="a weight rule",
        named="weight rule",
        group="bqlib.weights",
        positional=("embedding", "points"),
    ),
    "integrand": Kind(
        noun="an integrand",
        named="integrand family",
        group="bqlib.integrands",
        positional=("embedding", "rng"),
    ),
}


class PluginError(ValueError):
    """A plug-in is missing, cannot be loaded or does not fit; the message says why."""


def is_place(name):
    """Whether a name is the place of a plug-in.

    Examples
    --------
    >>> from bqlib.sweep.plugins import is_place
    >>> is_place("mine.py:Banana"), is_place("mypackage.targets:Banana"), is_place("sbq")
    (True, True, False)
    """
    return PLACE.search(name) is not None


def absolute(place, folder):
    """The same place with an absolute path of its file, which is relative to `folder`.

    Examples
    --------
    >>> from bqlib.sweep.plugins import absolute
    >>> absolute("./mine.py:Banana", "/sweeps/first")
    '/sweeps/first/mine.py:Banana'
    """
    where, colon, name = place.rpartition(":")
    if not where.endswith(".py"):
        return place
    return os.path.abspath(os.path.join(folder, where)) + colon + name


def without_folder(place):
    """The same place without the folder of its file, so that moving a project changes no result.

    Of a class or function itself, the place where it is defined.

    Examples
    --------
    >>> from bqlib.sweep.plugins import without_folder
    >>> without_folder("/sweeps/first/mine.py:Banana"), without_folder("sbq")
    ('mine.py:Banana', 'sbq')
    """
    if callable(place):
        named = place if hasattr(place, "__qualname__") else type(place)
        return f"{named.__module__}:{named.__qualname__}"
    where, colon, name = place.rpartition(":")
    return os.path.basename(where) + colon + name if where.endswith(".py") else place


@cache
def entry_points(kind):
    """Plug-ins of a kind that installed packages offer: name to the list of its places.

    A name has several places if several packages offer it.
    """
    from importlib import metadata  # takes 60 ms, and our own names do not need it

    places = {}
    for entry in metadata.entry_points(group=KINDS[kind].group):
        places.setdefault(entry.name, set()).add(entry.value)
    return {name: sorted(several) for name, several in places.items()}


@cache
def load(kind, place):
    """The class or function at a place.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    place : str
        The path of a file is relative to the working directory.

    Raises
    ------
    PluginError
        If it is missing, if loading it fails, or if trials could not call it.
    """
    where, _, name = place.rpartition(":")
    if where.endswith(".py"):
        module = _from_file(os.path.abspath(where))
    elif re.fullmatch(r"\w+(\.\w+)*", where):
        module = _from_package(where)
    else:
        raise PluginError(f'"{place}" must be file.py:name or package.module:name')
    if not hasattr(module, name):
        here = [key for key, found in vars(module).items() if _is_own(found, module)]
        raise PluginError(f'{where} has no "{name}"{_near(name, here)}It has: {_listed(here)}')
    found = getattr(module, name)
    problem = misfit(kind, found) or _unseen(found) or _taken(kind, found)
    if problem:
        raise PluginError(f"{without_folder(place)} {problem}")
    return found


def kind_of(place):
    """The kind of the plug-in at a place: the first one that it fits.

    Raises
    ------
    PluginError
        As :func:`load`, and if it fits no kind.
    """
    problems = []
    for kind in KINDS:
        try:
            load(kind, place)
            return kind
        except PluginError as error:
            problems.append((kind, str(error)))
    if len({problem for _, problem in problems}) == 1:
        raise PluginError(problems[0][1])
    raise PluginError(
        f"{without_folder(place)} is not a plug-in:\n"
        + "\n".join(f"- not {KINDS[kind].noun}: {problem}" for kind, problem in problems)
    )


def parameters(kind, function):
    """The parameters that a sweep can set, by name, as :class:`inspect.Parameter`."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, AttributeError):  # of annotations whose names exist for type checkers only
        signature = inspect.signature(function)
    named = list(signature.parameters.values())[len(KINDS[kind].positional) :]
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    not_set = KINDS[kind].not_set
    return {p.name: p for p in named if p.kind not in several and p.name not in not_set}


def reason_of(error):
    """Why a plug-in's code failed, in one line, with the file and line of the failure."""
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
    line = f" in {os.path.basename(own[-1].filename)}:{own[-1].lineno}" if own else ""
    return f"{type(error).__name__}{line}: {text}"


def _from_file(path):
    """The module of a file, loaded once per process."""
    stem = re.sub(r"\W", "_", Path(path).stem)
    name = f"{stem}_{sha256(path.encode()).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    try:
        source = _own_source(path)
    except FileNotFoundError:
        near = [file.name for file in Path(path).parent.glob("*.py")]
        raise PluginError(
            f"there is no file {path}{_near(Path(path).name, near)}"
            "Every machine of a run must see the file under this path"
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
            also = ". A file can import installed packages, but no file beside it: make a package"
        raise PluginError(f"{path} cannot be loaded: {reason_of(error)}{also}") from error
    return module


def _own_source(path):
    """Source of a file, unless every user of this machine could have written it.

    Raises
    ------
    PluginError
        If all may write the file, or may put another file in its folder under its name.
    """
    with open(path, "rb") as file:
        found, folder = os.fstat(file.fileno()), os.stat(os.path.dirname(path))
        others_file = found.st_uid not in (0, os.getuid())
        # In a folder such as /tmp, others may write, but not rename or delete.
        if folder.st_mode & stat.S_IWOTH and (others_file or not folder.st_mode & stat.S_ISVTX):
            raise PluginError(
                f"{path} is not loaded: every user of this machine may write into its folder. "
                "Move it, or run chmod o-w on the folder"
            )
        if found.st_mode & stat.S_IWOTH:
            raise PluginError(
                f"{path} is not loaded: every user of this machine may write it: run chmod o-w"
            )
        return file.read()


def _from_package(where):
    try:
        return import_module(where)
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and f"{where}.".startswith(f"{error.name}."):
            raise PluginError(
                f"there is no module {error.name} in this environment: install its package, or "
                f"write the path of a file with .py, such as ./{where.replace('.', '/')}.py:name"
            ) from None
        raise PluginError(f"{where} cannot be loaded: {reason_of(error)}") from error


def _is_own(found, module):
    return callable(found) and getattr(found, "__module__", "") == module.__name__


def _near(name, names):
    near = get_close_matches(name, names, n=1)
    return f'; did you mean "{near[0]}"? ' if near else ". "


def _listed(names):
    public = [name for name in names if not name.startswith("_")]
    return ", ".join(public) or "no classes or functions"


def _type_in_words(found):
    if inspect.isclass(found):
        return "a class"
    return "a function" if inspect.isfunction(found) else f"of type {type(found).__name__}"


def misfit(kind, found):
    """Why trials could not call something as a kind, or an empty text."""
    noun, positional = KINDS[kind].noun, KINDS[kind].positional
    if positional:
        keywords = KINDS[kind].keywords
        call = ", ".join((*positional, *(f"{keyword}=" for keyword in keywords)))
        wanted = f"{noun} must be a function({call}, ...)"
        if not inspect.isfunction(found):
            return f"is {_type_in_words(found)}; {wanted}"
        takes = inspect.signature(found).parameters
        if tuple(takes)[: len(positional)] != positional or not takes.keys() >= set(keywords):
            return f"takes ({', '.join(takes)}); {wanted}"
    else:
        from bqlib.kernels import Kernel  # takes 0.6 s, and lists of names do not need it

        if not inspect.isclass(found):
            return f"is {_type_in_words(found)}; {noun} must be a class"

        if issubclass(found, Kernel) != (kind == "kernel"):
            if kind == "target":
                return "is a kernel, not a target"
            return "is not a kernel: a kernel must be a subclass of bqlib.kernels.Kernel"
    return ""


def _unseen(found):
    """Why changes of the code of a plug-in would not be seen, or an empty text."""
    if "." in found.__qualname__:
        return (
            f"is defined in {found.__qualname__}; write it as a def or class at the top level of "
            "its module, so that changes of its code are seen"
        )
    return ""


def _taken(kind, found):
    """Why a sweep could not set the parameters of a plug-in, or an empty text."""
    taken = [name for name in sorted(KINDS[kind].reserved) if name in parameters(kind, found)]
    if taken:
        return f"has parameters with names of keys of a sweep: rename {', '.join(taken)}"
    return ""
