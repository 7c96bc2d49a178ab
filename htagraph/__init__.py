"""htagraph: why is this PyTorch job slow? One dependency graph over every rank of its Kineto traces.

The names are imported when first used, so that ``import htagraph`` loads neither pandas nor numba; `__init__.pyi`
lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
