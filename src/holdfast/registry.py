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
        self._complete = False

    def add(self, cls: type[Kind]) -> None:
        """Register a class if it sets ``name`` itself; a class without a name is abstract or private.

        Args:
            cls: A subclass, as ``__init_subclass__`` receives it.

        Raises:
            HoldfastError: The name is taken or malformed, or a needed attribute is missing.
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
        other = self._classes.get(name)
        if other is not None and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            raise HoldfastError(
                f"the {self.kind} {cls.__module__}.{cls.__qualname__} claims the name {name!r}, which "
                f"{other.__module__}.{other.__qualname__} has: choose another name."
            )
        self._classes[name] = cls

    def classes(self) -> dict[str, type[Kind]]:
        """Return all registered classes by name, in alphabetical order."""
        self._load()
        return dict(sorted(self._classes.items()))

    def makers(self) -> dict[str, Callable[..., Kind]]:
        """Return all classes and their presets by name; a preset is called ``class-name-preset``."""
        found: dict[str, Callable[..., Kind]] = {}
        for name, cls in self.classes().items():
            found[name] = cls
            for preset in getattr(cls, "presets", ()):
                found[f"{name}-{preset.replace('_', '-')}"] = getattr(cls, preset)
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
            return self.maker(given)()
        if isinstance(given, type) and issubclass(given, base):
            try:
                return given()
            except TypeError as error:
                raise HoldfastError(f"{given.__name__} cannot be made without settings: {first_line(error)}") from error
        raise HoldfastError(f"expected a holdfast {self.kind}, got {type(given).__name__}.")

    def _load(self) -> None:
        if not self._complete:
            self._complete = True
            package = importlib.import_module(self._package)
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{self._package}.{module.name}")
        load_extensions()


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
