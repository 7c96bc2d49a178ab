"""Raw events by hand, and what the models say of themselves."""

from __future__ import annotations

from typing import Any

from pydantic import AliasChoices
from pydantic.fields import FieldInfo

from htagraph.trace.kineto.events import MODELS, Args, Event, Metadata, OutOfMemory, UnknownEvent

EVENT_MODELS: list[type[Event]] = [*dict.fromkeys(MODELS.values()), OutOfMemory, Metadata, UnknownEvent]


def args_model(model: type[Event]) -> type[Args]:
    annotation = model.model_fields["args"].annotation
    assert isinstance(annotation, type)
    assert issubclass(annotation, Args)
    return annotation


def keys_of(name: str, field: FieldInfo) -> list[str]:
    choices = field.validation_alias
    return [str(key) for key in choices.choices] if isinstance(choices, AliasChoices) else [field.alias or name]


def event(cat: str | None, args: dict[str, Any], **envelope: Any) -> dict[str, Any]:
    category = {} if cat is None else {"cat": cat}
    return {"ph": "X", "name": "n", "pid": 1, "tid": 2, "ts": 1.5, "dur": 2, **category, **envelope, "args": args}
