"""What is worth naming in a finding, and how much of it fits: the thresholds that findings share."""

from __future__ import annotations

__all__ = [
    "LARGE_SHARE", "LETTERS_IN_SHORT", "MAX_LISTED", "MAX_NAMED", "MIN_PERCENT", "MIN_SHARE",
    "MOST_ROWS", "ROUNDING", "SHORT_LIST", "VISIBLE_PERCENT",
]  # fmt: skip

MIN_PERCENT = 2.0
"""Percent of the critical path, or of the makespan, from which something is named. Chosen: less is not worth naming.
Doubled, what takes 2 to 4 % is not named."""
MIN_SHARE = 0.05
"""Share of the whole (of the job's time, of a change, of waiting) from which something has a sentence. Chosen: less is
not worth one; without one of several ranks that do the same work, jobs were 0 to 4 % shorter, without a straggler 9 %
and more. Doubled, waits, idle time, gains and causes of 5 to 10 % are not named."""
LARGE_SHARE = 0.2
"""Share of a whole (of launch calls, of memory, of the path, of recorded time) from which it is named though something
else is larger, and which nearly all of a whole lacks. Chosen: worth knowing then. Doubled, what is a fifth to two
fifths is not named."""
MAX_NAMED = 3
"""Activities that prove a claim, pauses and causes that are named. Chosen: more do not fit on a screen. Doubled, six
are."""
MAX_LISTED = 4
"""Ranks, steps, names and options that a sentence lists; a list of numbers at length has twice as many. Chosen: they
fit on two lines. Doubled, four lines."""
SHORT_LIST = 2
"""Parts of a list, such as gains, that the words in brief name. Chosen: they fit on two lines. Doubled, four lines."""
MOST_ROWS = 5
"""Rows that a finding shows, and findings that a summary shows, with what makes them uncertain as one. Chosen: enough
to see whether it is one thing or many, and about ten lines. Doubled, a screen is full of them."""
ROUNDING = 0.005
"""Half of a percent, or of the second digit behind the point: less does not show in either. It follows from the digits
that are shown. Doubled, shares that add up to 101 % pass without a word, and 0.9 % of speedup is called none."""
VISIBLE_PERCENT = 1.0
"""The least percent that shows in whole percent. It follows from the digits. Doubled, growth of memory of 1 to 2 % is
not named."""
LETTERS_IN_SHORT = 32
"""Letters of a name in a sentence; chosen: less than half a line. Doubled, a kernel's may fill a line."""
