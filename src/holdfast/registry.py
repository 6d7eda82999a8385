"""Extensions by name: a class registers itself when it is defined, one file is enough to add it.

The base class of every kind of extension (``Explainer``, ``Criterion``, …) has a registry. A subclass that sets
``name`` is added to it. Modules in the package of the base class are imported when names are first looked up, and so
are modules that installed packages list in the entry point group ``holdfast.extensions``::

    [project.entry-points."holdfast.extensions"]
    my-package = "my_package.explainers"
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from threading import RLock
from typing import Any, Generic, TypeVar

from holdfast.errors import HoldfastError, first_line, unknown_name

GROUP = "holdfast.extensions"
Kind = TypeVar("Kind")
_loaded: set[str] = set()  # entry points that were imported


class Registry(Generic[Kind]):
    """The classes of one kind by name.

    Args:
        kind: What the classes are called in messages, such as ``"explainer"``.
        package: The package whose modules define the classes that ship with holdfast.
        needed: Class attributes that every registered class must have.
    """

    def __init__(self, kind: str, package: str, needed: Sequence[str] = ()):
        self.kind, self._package, self._needed = kind, package, tuple(needed)
        self._classes: dict[str, type[Kind]] = {}
        self._lock = RLock()
        self._loading = self._complete = False

    def add(self, cls: type[Kind]) -> None:
        """Register a class if it sets ``name`` itself; a class without a name is abstract or private.

        Args:
            cls: A subclass, as ``__init_subclass__`` receives it.

        Raises:
            HoldfastError: A name is taken or malformed, or a needed attribute is missing.
        """
        name = vars(cls).get("name")
        if name is None:
            return
        if not isinstance(name, str) or not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name):
            raise HoldfastError(
                f"the {self.kind} {cls.__qualname__} needs a name of lower-case words joined by hyphens, got {name!r}."
            )
        for attribute in self._needed:
            if not hasattr(cls, attribute):
                raise HoldfastError(f"the {self.kind} {cls.__qualname__} lacks the class attribute {attribute!r}.")
        for preset in getattr(cls, "presets", ()):
            if not callable(getattr(cls, preset, None)):
                raise HoldfastError(f"the {self.kind} {cls.__qualname__} names a preset {preset!r} that it lacks.")
        if not cls.__module__.startswith(f"{self._package}."):
            self._load_package()  # so that names of the package's own classes are known to be taken
        self._check_names(cls, name)
        self._classes[name] = cls

    def _check_names(self, cls: type[Kind], name: str) -> None:
        """Refuse a class whose name or presets another class has; the same class may be defined again."""
        claimed = _names_of(name, cls).keys()
        for other_name, other in self._classes.items():
            same = (other.__module__, other.__qualname__) == (cls.__module__, cls.__qualname__)
            taken = sorted(claimed & _names_of(other_name, other).keys())
            if taken and not same:
                raise HoldfastError(
                    f"the {self.kind} {cls.__module__}.{cls.__qualname__} claims the name {taken[0]!r}, which "
                    f"{other.__module__}.{other.__qualname__} has: choose another name."
                )

    def classes(self) -> dict[str, type[Kind]]:
        """Return all registered classes by name, in alphabetical order."""
        self._load_package()
        load_extensions()
        return dict(sorted(self._classes.items()))

    def makers(self) -> dict[str, Callable[..., Kind]]:
        """Return all classes and their presets by name; a preset is called ``class-name-preset``."""
        found: dict[str, Callable[..., Kind]] = {}
        for name, cls in self.classes().items():
            found |= _names_of(name, cls)
        return found

    def maker(self, name: str) -> Callable[..., Kind]:
        """Return the class or preset of this name.

        Raises:
            HoldfastError: There is none; the nearest name is suggested.
        """
        known = self.makers()
        if name not in known:
            raise unknown_name(self.kind, name, list(known))
        return known[name]

    def make(self, name: str) -> Kind:
        """Return an instance of the class or preset of this name, with its default settings.

        Raises:
            HoldfastError: There is none of this name, or it needs settings.
        """
        return self._made(self.maker(name), name)

    def instance(self, given: Any, base: type[Kind]) -> Kind:
        """Accept an instance, a class that needs no arguments, or a name.

        Args:
            given: What the caller passed.
            base: The class that the result is an instance of.

        Returns:
            The instance.

        Raises:
            HoldfastError: ``given`` is none of these.
        """
        if isinstance(given, base):
            return given
        if isinstance(given, str):
            return self.make(given)
        if isinstance(given, type) and issubclass(given, base):
            return self._made(given, given.__name__)
        raise HoldfastError(f"expected a holdfast {self.kind}, got {type(given).__name__}.")

    def _made(self, maker: Callable[..., Kind], name: str) -> Kind:
        try:
            return maker()
        except TypeError as error:
            raise HoldfastError(
                f"the {self.kind} {name} cannot be made without settings: {first_line(error)}"
            ) from error

    def _load_package(self) -> None:
        """Import all modules of the package, once; what fails is tried again next time."""
        with self._lock:
            if self._complete or self._loading:
                return
            self._loading = True
            try:
                package = importlib.import_module(self._package)
                for module in pkgutil.iter_modules(package.__path__):
                    importlib.import_module(f"{self._package}.{module.name}")
                self._complete = True
            finally:
                self._loading = False


def _names_of(name: str, cls: type[Kind]) -> dict[str, Callable[..., Kind]]:
    """Return a class and its presets by name."""
    presets = {f"{name}-{preset.replace('_', '-')}": getattr(cls, preset) for preset in getattr(cls, "presets", ())}
    return {name: cls, **presets}


def load_extensions() -> None:
    """Import the modules that installed packages list in the entry point group, each once.

    Raises:
        HoldfastError: A module cannot be imported, or registers something that is not allowed.
    """
    for point in entry_points(group=GROUP):
        if point.value in _loaded:
            continue
        _loaded.add(point.value)  # before the import, which may look names up itself
        try:
            importlib.import_module(point.module)
        except Exception as error:  # whatever an extension's module does wrong, one sentence says whose it is
            _loaded.discard(point.value)
            raise HoldfastError(f"the extension {point.name!r} cannot be loaded: {first_line(error)}") from error
