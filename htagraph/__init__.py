"""htagraph: why is this PyTorch job slow? One dependency graph over every rank of its Kineto traces.

The names are imported when first used, so that ``import htagraph`` loads neither pandas nor numba; `__init__.pyi`
lists them.
"""

from typing import Any

import lazy_loader

_imported, _listed, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the package exports
    """Return a name of the package, imported when first used; the error of an unknown name says the nearest names."""
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name.startswith("_") or name in __all__:
        return _imported(name)
    from htagraph.core.errors import nearest_words

    msg = f"module 'htagraph' has no {name!r}{nearest_words(name, __all__)}"
    raise AttributeError(msg, name=name)


def __dir__() -> list[str]:
    """Return the names that users need: all that the package exports, and its version."""
    return ["__version__", *_listed()]
