"""Words, tables, figures and files: the only floor that words, draws or writes; ``hg.plot`` is loaded when used."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["plot"])
