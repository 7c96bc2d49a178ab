"""What running the command line gave."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


def one_line_of_error(ran: Ran, *words: str) -> None:
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("htagraph: error: ")
    assert ran.err.count("\n") == 1
    assert not [word for word in words if word not in ran.err]
