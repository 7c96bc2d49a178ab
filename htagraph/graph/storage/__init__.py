"""Graphs in files: `saved` writes and opens one and says how it lies on the disk, `cache` keeps those of large jobs.

A file is imported when it is first used: small jobs, which are not cached, need neither. `__init__.pyi` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
