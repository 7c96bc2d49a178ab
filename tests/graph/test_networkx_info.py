"""What networkx asks at its own import: true of the backend, and cheap."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx

from htagraph.graph import networkx_backend
from htagraph.graph.networkx_info import get_info


def test_each_function_named_is_one_of_networkx_and_of_the_backend() -> None:
    names = get_info()["functions"]
    assert isinstance(names, dict)
    for name in names:
        assert callable(getattr(nx, name))
        assert callable(getattr(networkx_backend, name))


def test_networkx_knows_the_backend_under_its_name() -> None:
    assert get_info()["backend_name"] in nx.config.backends


def test_the_answer_loads_neither_numba_nor_pandas() -> None:
    code = (
        "import sys; from htagraph.graph.networkx_info import get_info; get_info(); "
        "print([name for name in ('numba', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
