"""holdfast: which features a prediction depends on, and how far they can move before it changes.

Names are imported when they are first used, so that importing the package takes no time. ``__init__.pyi`` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
