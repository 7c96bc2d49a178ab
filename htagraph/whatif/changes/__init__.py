"""What can be changed in a job: one file and one function of the same name each, from a state to another.

A file is imported when its change is first asked for: most commands ask for few. `__init__.pyi` lists them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
