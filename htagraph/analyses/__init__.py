"""What the graph means: one file, one public function of the same name, one documented result.

Nothing is imported here, so that a command loads the analyses that it shows and no others; `htagraph.NAME` finds each.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules={"execution_trace", "memory"})
