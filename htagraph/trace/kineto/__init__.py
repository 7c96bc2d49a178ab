"""The reader `kineto`: files of Kineto, which PyTorch's profiler writes, JSON, maybe gzipped, of one process each.

The code that reads single events again is imported when it is first used, as most commands read a file once.
`__init__.pyi` lists the names.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
