"""How mkdocstrings reads this project's docstrings: their results are described in sentences, not as `type: text`."""

from __future__ import annotations

import inspect
import pkgutil
import re
from typing import Any

import griffe

__all__ = ["Sentences"]

_RESULT = re.compile(r"(?m)^(Returns|Yields):\n(\s+)")
_EXAMPLE = re.compile(r"(?m)^Example:$")
_COLUMNS = "{columns}"
"""What a docstring has in the source in place of the columns of a declared table."""
_FUNCTION = re.compile(r"ChangeForm\(lambda: (changes\.\w+\.\w+)")
"""The function behind a change; two names may have one function."""
_STATE = re.compile(r"\n*Args:\n    state: .*(?=\n\n|$)|    state: .*\n")


class Sentences(griffe.Extension):
    """Gives each result the type that the signature names, and makes an example a block of code."""

    def on_object(self, *, obj: griffe.Object, **others: Any) -> None:  # noqa: ANN401 - griffe's
        """Change the docstring of an object before it is parsed."""
        del others
        if obj.docstring is None:
            return
        given = getattr(obj, "returns", None)
        returned = str(given) if given is not None else "None"
        text = obj.docstring.value
        if _COLUMNS in text:  # the function itself names them
            module = obj.module.path
            text = inspect.getdoc(pkgutil.resolve_name(f"{module}:{obj.path.removeprefix(module)[1:]}")) or ""
        text = _RESULT.sub(lambda found: f"{found[1]}:\n{found[2]}{returned}: ", text)
        obj.docstring.value = _EXAMPLE.sub("Examples:", text)

    def on_package(self, *, pkg: griffe.Module, **others: Any) -> None:  # noqa: ANN401 - griffe's
        """Show what `Scenario` makes of the functions of changes as methods, with the text that `help` shows."""
        del others
        scenario = pkg["whatif.scenario.Scenario"]
        for name, member in pkg["whatif.options.Changes"].members.items():
            function = _FUNCTION.search(str(getattr(member, "value", "")))
            if function is None:
                continue
            change = pkg[f"whatif.{function[1]}"]
            text = _STATE.sub("", change.docstring.value.replace("Return the state", "Return the scenario", 1))
            parameters = griffe.Parameters(griffe.Parameter("self"), *list(change.parameters)[1:])
            method = griffe.Function(name, parameters=parameters, returns="Scenario", lineno=member.lineno)
            method.docstring = griffe.Docstring(text, parent=method)
            scenario.set_member(name, method)
