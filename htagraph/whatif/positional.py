"""Arguments of changes as people give them: a selection and a number, or the words of the command line.

``scale(selection, 0.5)``, ``set(selection, "12us")``, ``network(2)`` and ``scale("name=*gemm*:0.5")`` become the
keywords of the changes. Whatever the command line reads after an option, the method of this option takes as its one
text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from numbers import Real
from typing import TYPE_CHECKING, Any

from htagraph.core.errors import nearest_words, shown
from htagraph.graph.dependency_graph import DependencyGraph
from htagraph.graph.selection import Selection

if TYPE_CHECKING:
    from htagraph.whatif.options import Change

__all__ = ["check_keywords", "of_graph", "positional_options", "required_keywords", "takes_criteria"]

_MOST = 2
"""Arguments without names: which activities, and the number of the change."""


def takes_criteria(signature: Signature) -> bool:
    """Return whether a change is about activities that criteria select."""
    return "criteria" in signature.parameters


def _keywords(signature: Signature) -> list[Parameter]:
    """Return the keywords of a change, criteria left out; the first parameter is the state."""
    _, *parameters = signature.parameters.values()
    return [parameter for parameter in parameters if parameter.kind is not Parameter.VAR_KEYWORD]


def required_keywords(signature: Signature) -> list[str]:
    """Return the keywords that a change cannot do without, in their order."""
    return [parameter.name for parameter in _keywords(signature) if parameter.default is Parameter.empty]


def positional_options(
    name: str, signature: Signature, read: Callable[[str], Change], given: tuple[object, ...]
) -> dict[str, Any] | Change:
    """Return the keywords that arguments without names mean, or the change that a text of the command line means.

    Args:
        name: the method, for errors.
        signature: that of the change.
        read: reads the text of the method's option.
        given: a selection and perhaps a number or a text with a unit; or one number or text.

    Raises:
        TypeError: there are more arguments, or the change takes none of this type.
        ValueError: the text cannot be read.
    """
    first, *amounts = given
    names = [parameter.name for parameter in _keywords(signature) if parameter.kind is not Parameter.KEYWORD_ONLY]
    if names and len(given) <= len(names) and not (isinstance(first, str) and not amounts):
        return dict(zip(names, given, strict=False))
    if len(given) > _MOST or (amounts and not isinstance(first, Selection)):
        msg = f"{name} takes a selection and a number, or one text, not {', '.join(map(shown, given))}"
        raise TypeError(msg)
    if isinstance(first, str):
        return read(first)
    if isinstance(first, Real) and not isinstance(first, bool):
        return _of_number(name, read, first)
    if not isinstance(first, Selection) or not takes_criteria(signature):
        wanted = "a selection, a number or a text" if takes_criteria(signature) else "a number or a text"
        msg = f"{name} takes {wanted}, or keywords, not {shown(first)} ({type(first).__name__})"
        raise TypeError(msg)
    return {"activity": first} | _amount(name, signature, read, amounts)


def _of_number(name: str, read: Callable[[str], Change], number: Real) -> Change:
    try:
        return read(str(number))
    except ValueError as error:
        msg = f"{name} takes a selection and a number, a text as on the command line, or keywords ({error})"
        raise TypeError(msg) from None


def _amount(name: str, signature: Signature, read: Callable[[str], Change], amounts: list[object]) -> dict[str, object]:
    """Return the keyword of a change's number, a text read as the command line reads the text behind the colon."""
    keywords = required_keywords(signature)
    if not amounts:
        return {}
    if len(keywords) != 1:
        msg = f"{name} takes a selection and its keywords ({', '.join(keywords) or 'none'}), not {shown(amounts[0])}"
        raise TypeError(msg)
    keyword = keywords[0]
    amount = amounts[0]
    return {keyword: read(f"activity=0:{amount}").options[keyword] if isinstance(amount, str) else amount}


def check_keywords(name: str, signature: Signature, options: Mapping[str, object]) -> None:
    """Raise TypeError where a keyword is missing or unknown, with the keywords most like the unknown one.

    Unknown criteria are left to `htagraph.graph.selection.mask_of`, which lists the criteria.
    """
    keywords = [parameter.name for parameter in _keywords(signature)]
    unknown = [keyword for keyword in options if keyword not in keywords]
    missing = [keyword for keyword in required_keywords(signature) if keyword not in options]
    if missing:
        near = "".join(nearest_words(keyword, missing) for keyword in unknown[:1])
        msg = f"{name} needs {', '.join(f'{keyword}=' for keyword in missing)}{near}"
        raise TypeError(msg)
    takes_any = any(parameter.kind is Parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    if unknown and not takes_any:
        takes = ", ".join(f"{keyword}=" for keyword in keywords) or "no keywords"
        msg = f"{name} has no {unknown[0]}=: it takes {takes}{nearest_words(unknown[0], keywords)}"
        raise TypeError(msg)


def of_graph(options: Mapping[str, Any], recorded: DependencyGraph, changed: DependencyGraph) -> dict[str, Any]:
    """Return options with each selection of the recorded graph as one of the changed graph, by activity numbers.

    A change of edges keeps the activities. Where the count of activities differs, selections stay as they are, and the
    changed graph refuses them.
    """
    same = len(recorded.activities) == len(changed.activities)
    return {
        keyword: Selection(changed, value.activities)
        if isinstance(value, Selection) and value.graph is recorded and same
        else value
        for keyword, value in options.items()
    }
