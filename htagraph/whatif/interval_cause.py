"""Why an interval is as wide as it is: every cause, with its words and the recording that would show more."""

from __future__ import annotations

from enum import Enum

__all__ = ["IntervalCause"]


class IntervalCause(str, Enum):
    """A cause of an interval's width; the value is its words, as the reason in a sentence.

    Example:
        >>> print(IntervalCause.STEPS_DIFFER, "|", IntervalCause.STEPS_DIFFER.telling)
        steps differ | of more steps
    """

    telling: str
    """The recording that would show more, behind "a recording"; empty for one with Python stacks."""

    def __new__(cls, words: str, telling: str = "") -> IntervalCause:
        """Return the member with some words."""
        member = str.__new__(cls, words)
        member._value_ = words
        member.telling = telling
        return member

    def __str__(self) -> str:
        """Return the words, in every version of Python."""
        return str(self.value)

    def __format__(self, form: str) -> str:
        """Return the words in a form, in every version of Python."""
        return format(str(self.value), form)

    NONE = ""
    UNKNOWN_SHARING = "how transfers share links is not known", "in which transfers do not overlap"
    UNEXPLAINED_PAUSES = ("pauses in the recording are not explained",)
    STEPS_AHEAD = (
        "steps would run ahead of work of other threads, which may hold them up",
        "of the job with shorter steps",
    )
    UNKNOWN_SPREAD = "a recording of so few steps does not show how much they differ", "of more steps"
    STEPS_DIFFER = "steps differ", "of more steps"
    SLOWER_UNDER_LOAD = "work that no longer pauses may take longer than recorded", "of the changed job"
    UNKNOWN_CORES = (
        "threads that seem to wait for cores may wait for something else",
        "on a host with more cores",
    )
    SHARED_CORES = (
        "busy threads that outnumber the cores may have slowed each other down",
        "on a host with more cores",
    )
    SHARED_INTERPRETER = (
        "threads of one process that run Python at once may have slowed each other down",
        "of the changed job",
    )
    UNCERTAIN_WAITS = ("waits in the recording are not certain",)
    OUTSIDE = ("pauses may be waits for something that was not recorded",)
    SLOW_LOADER = (
        "the data loader may not keep up, which the recording cannot show",
        "of the data loader alone",
    )
    SLOW_ANSWERS = (
        "another thread or process may not keep up, which the recording cannot show",
        "of the changed job",
    )
    WAITS_IN_TURN = (
        "work handed to another thread may be waited for, which the recording cannot show",
        "of the changed job",
    )
    FIRST_ANSWERS = "the first of several answers may be waited for, whichever it is", "of the changed job"
    POLLS = (
        "waits that run out may be over as soon as the work that they wait for is done",
        "of the changed job",
    )
    LAST_PARTS = (
        "threads that went on may need work that ended beside them, which the recording cannot show",
        "of the changed job",
    )
    SLOW_MESSAGES = "messages that nobody waited for may take long", "on a slower network"
    QUICK_MESSAGES = "messages that nobody waited for may take hardly any time", "on a slower network"
    HOSTS_IN_TRANSFERS = "hosts without a free core may take part of transfers", "on a slower network"
    NO_NEED = ("what follows communication may not need it",)
    SURROUNDINGS = ("code around what was removed may go with it",)
    ABSENT_RANKS = (
        "what looks like transfer may be waiting for ranks that were not recorded",
        "of all ranks",
    )
    GROUPS_MAY_STAY = (
        "process groups that are taken to grow may be tensor parallel, and stay as they are",
        "of operators with their backward pass, or with labels of process groups",
    )
    UNSHARED_WORK = (
        "tensor parallel ranks may each do all of the work on activations that they are taken to share",
        "of two tensor parallel ranks",
    )
    LONGER_MODEL = "what a model predicts may take longer", "of the changed job"
    SHORTER_MODEL = "what a model predicts may take less time", "of the changed job"
