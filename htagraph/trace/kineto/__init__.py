"""The reader `kineto`: files of Kineto, which PyTorch's profiler writes, JSON, maybe gzipped, of one process each.

`__init__.pyi` lists the names of a `Reader`; they are imported when first used, so that any file here may come first.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
