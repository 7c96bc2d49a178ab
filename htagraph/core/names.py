"""Forms of a name: as written, readable, stable between runs, short, and short beside names that would look alike.

The name as written identifies an event and selects the event in predictions. A reader sees a short form, a comparison
of two recordings uses the stable form, and meaning comes from the readable form.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from itertools import zip_longest

__all__ = [
    "LONGEST_READ",
    "is_mangled",
    "is_readable_as",
    "outlined",
    "readable_name",
    "selecting_name",
    "short_name",
    "sibling_names",
    "stable_name",
    "step_number",
    "template_arguments",
    "without_address",
]

LONGEST_READ = 4096
"""Letters of a name that are read for its meaning. Chosen: the longest kernel of CUTLASS seen in public recordings has
2,004. Doubled, damaged files of long names take twice as long to report."""
_LONGEST_MANGLED = 2048
"""Letters of a mangled name that the library reads, in 1.5 µs each. Chosen: the longest one seen in public recordings
has 2,004. Doubled, damaged files of long names take twice as long to report."""
_LONGEST_ARGUMENT = 48
"""Letters that a template argument has in a short name. Chosen: functors of PyTorch are shorter. Doubled, an argument
fills a row of a table."""
_MOST_ARGUMENTS = 64
"""Template arguments and parameters that are compared. Chosen: kernels of CUTLASS have about 30. Doubled, no label
of these changes."""
_MOST_WORDS = 3
"""Words by which names are told apart whose functors are alike. Chosen: a type or the number of a lambda is one word.
Doubled, the words fill a row of a table."""


def is_mangled(name: str) -> bool:
    """Return True for a name as the linker writes it, by the Itanium ABI of C++.

    Example:
        >>> is_mangled("_Z4gemmIfEvPT_"), is_mangled("gemm")
        (True, False)
    """
    return name.startswith(("_Z", "__Z"))


def readable_name(name: str) -> str:
    """Return a name without the linker's mangling; any other name is returned unchanged.

    Of a mangled name that is too long to be read, or that the library refuses, the outline is returned: namespaces and
    the function.

    Example:
        >>> readable_name("_Z4gemmI13__nv_bfloat16EvPT_"), readable_name("gemm")
        ('void gemm<__nv_bfloat16>(__nv_bfloat16*)', 'gemm')
    """
    return (_demangled(name) or _outline(name)) if is_mangled(name) else name


def selecting_name(name: str) -> str:
    """Return the form of a name for a prediction: readable where the library reads the whole name, else as written.

    Example:
        >>> selecting_name("_Z4gemmIfEvPT_"), selecting_name("_Z!damaged")
        ('void gemm<float>(float*)', '_Z!damaged')
    """
    return (_demangled(name) or name) if is_mangled(name) else name


@lru_cache(maxsize=1 << 14)  # kernels that a job shows or compares: a few thousand
def _demangled(name: str) -> str:
    """Return a mangled name as the library reads the name; empty where the library is absent or refuses the name."""
    if len(name) > _LONGEST_MANGLED:
        return ""
    try:
        from demangle import demangle
    except ImportError:  # the library needs Python 3.11
        return ""
    text = demangle(name)  # bounds depth and length: a name of 300 letters can stand for gigabytes
    return "" if text == name else text


def is_readable_as(name: str, texts: Container[str], near: str) -> bool:
    """Return True if the readable form of a mangled name is among some texts, which all have the letters of `near`.

    Names of functions that `near` does not have are not read, because reading thousands of long names takes seconds.

    Example:
        >>> is_readable_as("_Z4gemmPf", {"gemm(float*)"}, "gemm(float*)"), is_readable_as("_Z4copyv", {"f()"}, "f()")
        (True, False)
    """
    return is_mangled(name) and _outline(name).rpartition("::")[2] in near and readable_name(name) in texts


_PART = re.compile(r"(?:St)?L?(\d{1,4})")


def _outline(name: str) -> str:
    """Return namespaces and the function of a mangled name, as far as template arguments do not interrupt them.

    Example:
        >>> _outline("_ZN7cutlass13device_kernelINS_4gemmEEEv")
        'cutlass::device_kernel'
    """
    prefix = re.match(r"_*Z(N[rVKRO]*)?", name)
    place = prefix.end() if prefix else 0
    segments = list[str]()
    while (number := _PART.match(name, place)) and place < LONGEST_READ:
        place = number.end() + int(number[1])
        segments.append(name[number.end() : place])
        if not prefix or not prefix[1]:
            break  # what follows is a parameter
    shown = [segment for segment in segments if not segment.startswith("_GLOBAL__N")]
    return "::".join(shown) or name.lstrip("_")


def outlined(name: str) -> str:
    """Return a name, of a mangled name also namespaces and the function, which takes no library and little time.

    Patterns search the result, so that a pattern of a namespace fits mangled names as well.

    Example:
        >>> outlined("_ZN7deep_ep9intranode8dispatchEv"), outlined("gemm")
        ('_ZN7deep_ep9intranode8dispatchEv deep_ep::intranode::dispatch', 'gemm')
    """
    return f"{name[: LONGEST_READ // 2]} {_outline(name)}" if is_mangled(name) else name


_COPIES = ("Memcpy", "Memset")
_SIGNATURE = re.compile(r"^void |[(<]")
_CALL = "operator()"
_CALL_KEPT = "operator\0"  # these parentheses belong to the name, not to parameters
_BRACKETS = re.compile(r"([<>()])")
_UNNAMED = re.compile(r"\(anonymous namespace\)::|<unnamed>::|_GLOBAL__N_\w*?::")
_UNSTABLE = re.compile(r"(?<=\.py)\(\d+\)|(?: at |_at_+)0x[0-9a-f]+|(?<![0-9a-zA-Z])0x[0-9a-f]{6,}")
_HASHED = re.compile(r"(?:\w*_INTERNAL_|_GLOBAL__N__)[0-9a-f]{8}_\w+?_[0-9a-f]{8}(?:_\d+)?(?:::)?")
"""Namespaces of nvcc with a hash of the file; parts of a name's readable form."""
_STEP = re.compile(r"^ProfilerStep#(\d{1,9})(?!\d)")  # up to nine digits: step numbers are int32


def step_number(name: str) -> int | None:
    """Return the number N of a step annotation ``ProfilerStep#N``, or None for any other name.

    Example:
        >>> step_number("ProfilerStep#12")
        12
    """
    match = _STEP.match(name)
    return int(match[1]) if match else None


@lru_cache(maxsize=1 << 14)  # kernels that a job shows or compares: a few thousand
def short_name(name: str) -> str:
    """Return a kernel's name without template arguments, parameters and return type, for tables.

    A name that is not a C++ signature is returned unchanged.

    Example:
        >>> short_name("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int, int)")
        'at::native::vectorized_elementwise_kernel'
        >>> short_name("_Z4gemmIfEvPT_")
        'gemm'
        >>> short_name("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__")
        'enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__'
        >>> short_name("train step (epoch 3)")
        'train step (epoch 3)'
    """
    whole = readable_name(name)
    read = whole[:LONGEST_READ]
    is_iterator = ")#" in read and "lambda" not in read  # of a data loader
    if is_iterator or read.startswith(_COPIES) or not _SIGNATURE.search(read):
        return whole
    signature = _UNNAMED.sub("", read).replace("->", "").removesuffix(" const").replace(_CALL, _CALL_KEPT)
    plain = list[str]()
    depth = 0
    for piece in _BRACKETS.split(signature):
        if piece in ("<", "("):
            if not depth and plain and plain[-1][-1].isspace():
                return whole  # no bracket of a signature follows a space: "train step (epoch 3)"
            depth += 1
        elif piece in (">", ")"):
            depth = max(0, depth - 1)
        elif piece and not depth:
            plain.append(piece)
    words = "".join(plain).replace(_CALL_KEPT, _CALL).split()
    return words[-1] if words else whole


def without_address(name: str) -> str:
    """Return a name without the address of an object, which says nothing to a reader.

    Example:
        >>> without_address("<built-in method mm of Tensor object at 0x7f2a>")
        '<built-in method mm of Tensor object>'
    """
    return re.sub(" at 0x[0-9a-f]+", "", name)


def stable_name(name: str) -> str:
    """Return a name without the parts that change between runs: mangling, step, line numbers, addresses, hashes.

    Example:
        >>> stable_name("ProfilerStep#12"), stable_name("model.py(37): forward")
        ('ProfilerStep', 'model.py: forward')
        >>> stable_name("<built-in method mm of Tensor object at 0x7f2a>")
        '<built-in method mm of Tensor object>'
        >>> stable_name("kernel_Gemm_object_at_0x7f2a14c0_tile")
        'kernel_Gemm_object_tile'
    """
    if step_number(name) is not None:
        return name.partition("#")[0]
    text = readable_name(name)
    if "(" in text or "0x" in text:
        text = _UNSTABLE.sub("", text)
    return _HASHED.sub("", text) if "_INTERNAL_" in text or "_GLOBAL__N__" in text else text


def template_arguments(name: str) -> list[str]:
    """Return the outermost template arguments of a readable name, then its parameters.

    Example:
        >>> template_arguments("void sum<4, Add<float, int>>(float*, int)")
        ['4', 'Add<float, int>', 'float*', 'int']
    """
    return list(_outermost(_UNNAMED.sub("", name[:LONGEST_READ])))[:_MOST_ARGUMENTS]


def _outermost(text: str) -> Iterator[str]:
    """Yield the texts between the outermost brackets, split at commas."""
    depth = start = 0
    for mark in re.finditer(r"->|operator\(\)|[<>(){}\[\],]", text):
        if mark[0] in ("<", "(", "{", "["):
            depth += 1
            start = mark.end() if depth == 1 else start
        elif mark[0] in (">", ")", "}", "]", ",") and depth:
            if depth == 1 and start < mark.start():
                yield text[start : mark.start()].strip()
            start = mark.end() if depth == 1 else start
            depth -= mark[0] != ","


def sibling_names(names: Sequence[str]) -> list[str]:
    """Return a short name for each name; names that would look alike get the template arguments that differ.

    Example:
        >>> sibling_names(["void each<4, at::Add<float>>(int)", "void each<4, at::Mul<float>>(int)", "copy"])
        ['each<Add>', 'each<Mul>', 'copy']
    """
    short = {name: short_name(name) for name in dict.fromkeys(names)}
    families: dict[str, list[str]] = {}
    for name, word in short.items():
        families.setdefault(word, []).append(name)
    for word, family in families.items():
        if len(family) > 1:
            short |= zip(family, _told_apart(word, family), strict=True)
    return [short[name] for name in names]


def _told_apart(word: str, family: Sequence[str]) -> list[str]:
    """Return different names of a family by as few template arguments as that takes, in as few letters."""
    readable = [readable_name(name) for name in family]
    columns = zip_longest(*map(template_arguments, readable), fillvalue="")
    chosen = _fewest_columns([tuple(map(_brief, column)) for column in columns], len(family))
    labels = [", ".join(filter(None, dict.fromkeys(row))) for row in zip(*chosen, strict=True)] or [""] * len(family)
    for further in (_own_words, _numbers):
        for places in _alike(labels):
            for place, text in zip(places, further([readable[place] for place in places]), strict=True):
                labels[place] = ", ".join(filter(None, (labels[place], text)))
    return [f"{word}<{label}>" if label else word for label in labels]


def _alike(labels: Sequence[str]) -> list[list[int]]:
    """Return the places of each label that occurs several times."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        places.setdefault(label, []).append(place)
    return [group for group in places.values() if len(group) > 1]


def _own_words(texts: Sequence[str]) -> list[str]:
    """Return the first words of each text that not all texts have."""
    words = [dict.fromkeys(re.findall(r"#?\w+", text[:LONGEST_READ])) for text in texts]
    shared = set.intersection(*map(set, words))
    return [" ".join([word for word in row if word not in shared][:_MOST_WORDS]) for row in words]


def _numbers(texts: Sequence[str]) -> list[str]:
    """Return a number for each text, from 1."""
    return [f"#{number}" for number in range(1, len(texts) + 1)]


def _fewest_columns(columns: Sequence[tuple[str, ...]], count: int) -> list[tuple[str, ...]]:
    """Return columns in their order, the most telling columns first, until no further column tells rows apart."""
    order = sorted(range(len(columns)), key=lambda place: -len(set(columns[place])))
    taken = list[int]()
    groups = 1
    for place in order:
        rows = {tuple(columns[each][row] for each in (*taken, place)) for row in range(count)}
        if len(rows) > groups:
            taken.append(place)
            groups = len(rows)
    return [columns[place] for place in sorted(taken)]


_LAMBDA = re.compile(r"[{\['<]lambda\d*(?:'?\(|\()([^()]*)\)")
_ENCLOSING = re.compile(r"(?:\w+::)*(\w+)(?=[<(])")
_NAMESPACE = re.compile(r"\b(?:\w+::)+")


def _brief(argument: str) -> str:
    """Return the functor of a template argument: its class, or the function in which a lambda stands."""
    text = _UNNAMED.sub("", argument).removeprefix("void ")
    lambdas = _LAMBDA.findall(text)
    if not lambdas:
        return _cut(_NAMESPACE.sub("", text.partition("<")[0]))
    enclosing = _ENCLOSING.match(text)
    if enclosing and text[enclosing.end()] == "<":
        inner = template_arguments(text[enclosing.end() :])
        return _brief(inner[0]) if inner else _cut(enclosing[1])
    return _cut(f"{enclosing[1]}({lambdas[-1]})" if enclosing else _NAMESPACE.sub("", text))


def _cut(text: str) -> str:
    """Return a template argument without its middle where it is too long."""
    half = _LONGEST_ARGUMENT // 2
    return text if len(text) <= _LONGEST_ARGUMENT else f"{text[:half]}…{text[-half:]}"
