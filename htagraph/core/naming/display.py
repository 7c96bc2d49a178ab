"""Names as they are shown (without signatures) and compared (without parts that change between runs)."""

from __future__ import annotations

import re

from htagraph.core.naming.regions import is_data_loader, step_number

__all__ = ["BETWEEN_OPERATORS", "short_name", "stable_name"]

BETWEEN_OPERATORS = "Python between operators"
"""What the host's time is called that no event covers, or only a step."""

_SIGNATURE = re.compile(r"^void |[(<]")
_CALL, _CALL_KEPT = "operator()", "operator\0"  # these parentheses belong to the name, not to parameters


def short_name(name: str) -> str:
    """Return a kernel's name without template arguments, parameters and return type, for tables.

    A name that is not a C++ signature is returned unchanged.

    Example:
        >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int, int)")
        'at::native::vectorized_elementwise_kernel'
        >>> short_name("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
        'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__'
        >>> short_name("train step (epoch 3)")
        'train step (epoch 3)'
    """
    if name.startswith(("Memcpy", "Memset")) or not _SIGNATURE.search(name) or is_data_loader(name):
        return name
    plain: list[str] = []
    depth = 0
    signature = name.replace("(anonymous namespace)::", "").replace("->", "").removesuffix(" const")
    for letter in signature.replace(_CALL, _CALL_KEPT):
        if letter in "<(":
            if not depth and plain and plain[-1].isspace():
                return name  # no bracket of a signature follows a space: "train step (epoch 3)"
            depth += 1
        if not depth:
            plain.append(letter)
        if letter in ">)":
            depth = max(0, depth - 1)
    words = "".join(plain).replace(_CALL_KEPT, _CALL).split()
    return words[-1] if words else name


_UNSTABLE = re.compile(r"(?<=\.py)\(\d+\)| at 0x[0-9a-f]+")


def stable_name(name: str) -> str:
    """Return a name without the parts that change between runs: step number, line numbers, addresses.

    Example:
        >>> stable_name("ProfilerStep#12"), stable_name("model.py(37): forward")
        ('ProfilerStep', 'model.py: forward')
        >>> stable_name("<built-in method mm of Tensor object at 0x7f2a>")
        '<built-in method mm of Tensor object>'
    """
    if step_number(name) is not None:
        return name.partition("#")[0]
    return _UNSTABLE.sub("", name) if "(" in name or " at 0x" in name else name
