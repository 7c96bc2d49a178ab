"""The reader `pftrace`: Perfetto's native format (protobuf), as PyTorch's CUPTI backend writes it, maybe gzipped.

`__init__.pyi` lists the names of a `Reader`; they are imported when first used, so that any file here may come first.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
