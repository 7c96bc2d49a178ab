"""What networkx asks at its own import: true of the backend, and cheap."""

from __future__ import annotations

import subprocess
import sys

import networkx as nx
from networkx.utils.backends import _registered_algorithms as dispatched

from htagraph.graph import networkx_backend
from htagraph.graph.networkx_info import get_info


def test_the_answer_keeps_no_list_of_functions() -> None:
    assert "functions" not in get_info()


def test_the_backend_has_every_function_that_networkx_dispatches() -> None:
    missing = [name for name in dispatched if not callable(getattr(networkx_backend, name, None))]
    assert missing == []
    assert not hasattr(networkx_backend, "ancesters")


def test_networkx_knows_the_backend_under_its_name() -> None:
    assert get_info()["backend_name"] in nx.config.backends


def test_the_answer_loads_neither_numba_nor_pandas() -> None:
    code = (
        "import sys; from htagraph.graph.networkx_info import get_info; get_info(); "
        "print([name for name in ('numba', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
