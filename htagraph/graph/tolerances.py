"""What counts as simultaneous, long, regular or proven in a recording, and how sure each kind of evidence is.

Everything that estimates clocks, matches collectives and infers waits compares times with these. No conclusion hangs on
one limit: `tests/laws/test_sensitivity.py` halves and doubles them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from htagraph.core.statistics import MOST, SEVERAL

__all__ = ["LIMITS", "Confidence", "Tolerances"]


@dataclass(frozen=True)
class Tolerances:
    """Times in ns, shares of a whole, factors, and counts. Where no source is given, the value was chosen.

    Example:
        >>> LIMITS.tick_ns, LIMITS.damaged
        (2000, 0.01)
    """

    resolution_ns: int = 1_000
    """The smallest spread that is assumed: files of whole µs are no more exact."""
    tick_ns: int = 2_000
    """Error of times on one clock, and between clocks that were compared: two ticks of a file of whole µs."""
    two_clocks_ns: int = 20_000
    """Error between the clocks of a host and its device (up to 12 µs in real traces), or between a call on a host and
    its record, before which the thread may be put aside."""
    proven_by_id_ns: int = 10_000_000
    """Error that refutes a dependency proven by ids: an absurd time only."""
    host_clocks_ns: int = 1_000_000
    """The clocks of hosts differ by less, as NTP sets them; fits that need more cost more and are taken later."""
    clock_estimates_ns: int = 100_000
    """Two estimates of one clock offset may differ by this much beside their spreads: drift within a window."""
    close_ns: float = 300.0
    """Residuals of ends below this count alike: it is less than the spread of any real collective."""
    exact_ns: float = 1e-7
    """How near two ways to solve a fit of clocks come: far below 1 ns, to which offsets are rounded."""
    ends_ns: int = 10_000
    """The ends of a collective's members lie within this on devices."""

    window_ns: int = 10_000
    """Waiting work of a device starts this soon after the awaited work ended (simulated 0.8 µs, real 1 to 6 µs, AMD 10
    to 18 µs); up to four times as much is believed where a rank's collectives show it."""
    launch_ns: int = 10_000
    """The largest launch latency of a rank whose launches never met a free stream; 4 to 8 µs are usual on CUDA."""
    idle_start_ns: int = 100_000
    """An idle device starts work sooner after its launch returned (1 to 30 µs); work that starts later waited."""
    queued_ns: int = 30_000
    """Several launch latencies: work launched this long before was queued."""
    pause_ns: int = 1_000
    """Pause of a CUDA device between two queued kernels, where too few were recorded for a median."""
    long_pause_ns: int = 20_000
    """A longer pause between queued kernels has another reason (devices pause 0.5 to 3 µs, 15 µs where a profiler
    serializes). At 30 µs, pauses of a stream behind work of another stream would be its own (torchrec on V100)."""

    signal_ns: int = 100_000
    """A kernel writes the memory that a host polls this long before its own end at most. Measured: DeepEP's dispatch
    ends 20 to 70 µs after the host went on."""

    own_call_ns: int = 3_000
    """Time of a blocking call without waiting: cudaStreamSynchronize with nothing pending takes 2 to 4 µs."""
    jitter_ns: int = 10_000
    """By how much the times of calls on a host vary."""
    usual_return_ns: int = 20_000
    """A blocked call returns this soon after the awaited work, where a rank shows too few returns; 4 to 15 µs are
    usual."""
    long_call_ns: int = 200_000
    """A call that takes longer waited, and one that returns longer after its work was busy with something else: runtime
    calls take 1 to 20 µs, returns up to 130 µs in real traces, and clocks cannot be that wrong."""
    python_ns: int = 100_000
    """A thread that records nothing for longer waits: Python between two operators takes 5 to 50 µs."""
    turn_ns: int = 1_000_000
    """Threads of a busy host wake, take turns, leave a barrier and fetch a batch that is ready within this. Measured:
    0.1 to 0.25 ms for queues and futures of Python, 0.9 to 1.4 ms to fetch a small batch with PyTorch 2.13."""

    slice_ns: int = 4_000_000
    """A host thread that is done may be put aside for this long before its record ends: Linux lets a thread run 3 to 4
    ms before another one gets the core. Measured: gloo wakes its caller up to 4 ms before its record ends."""

    damaged: float = 0.01
    """Share of records that may contradict the truth: damaged records. A wrong inference contradicts far more."""
    nearly_all: float = 0.9
    """Share of the occurrences that must agree: the first and the last one of a recording may differ."""
    typical: float = 0.8
    """Share of values that count as usual; the rest are outliers."""
    most: float = MOST
    """More than this share of the occurrences are most of them; a share of 1 would let one odd record decide."""
    small: float = 0.05
    """Share of a whole that does not matter."""
    gain: float = 0.8
    """A more special explanation must leave at most this share of the errors of the plain one."""
    steady: float = 2.0
    """Times between batches that vary this many times as much as the thread's own times mean that it does not wait."""
    uneven: float = 2.0
    """Times as long as the other steps, or they as it, from which on a step is uneven: jobs vary by tens of percent."""
    slope: float = 0.5
    """How much ends may follow arrivals: 0 for members of one collective, 1 for strangers."""
    spreads: float = 5.0
    """Times the usual spread beyond which values differ. Measured: ends within a host lie up to twice as far apart."""
    doubt_spreads: float = 3.0
    """Spreads of ends by which an offset may be wrong. Measured: ends of real ranks differ by up to twice their spread;
    benchmarks/clocks.py counts how often the truth is within."""
    far_clocks: float = 3.0
    """What a clock offset adds to the cost of a fit at most: a clock that was never set may be off by anything."""
    times_worse: float = 2.0
    """Times worse that any other partner of a send must be."""
    transfer_ratio: float = 10.0
    """Times the least transfer time beyond which that time is halved: no link slows down tenfold between messages."""
    times_usual: int = 4
    """Times the usual duration up to which one is no exception."""

    often: int = SEVERAL
    """Occurrences that must agree, or that show a usual length or a spread: two may agree by chance."""
    returns: int = 5
    """Returns that a rank must show before their 5th percentile means anything."""
    proof: int = 6
    """Collectives from which on a fit proves something by itself."""
    for_drift: int = 30
    """Collectives that every rank needs before drift is estimated: fewer do not tell it from noise."""
    queue: int = 16
    """The shortest queue of a stream, in kernels and copies, that is believed: queues of CUDA and ROCm hold 1024."""
    ahead: int = 2
    """Batches that a loader's worker prepares ahead: PyTorch's default `prefetch_factor`."""
    few: int = 8
    """A few: recordings of ranks start within so many collectives, and of fewer pauses or messages no percentile is
    known."""
    in_a_row: int = 16
    """Calls, records, workers or sequences of one kind that occur together at most: libraries and loaders use fewer."""
    tried: int = 64
    """Candidates (streams, places, shifts) that are tried, the likeliest first; for time."""
    compared: int = 4_096
    """Alternatives of a search, or pairs of sequences in a pool, that are compared at most: 0.1 s."""
    tested: int = 400
    """Waits of a site on which hypotheses are tested, evenly spread; for time. 1 % of 400 is 4."""
    nearest_ends: int = 4
    """Ends before a wake-up whose names may have caused it: threads that work in step end together."""
    places: int = 256
    """Places of two sequences that are compared under each shift; for time."""
    track_neighbours: int = 6
    """In large pools, each sequence is compared with so many sequences, the most parallel; for time."""
    host_ranks: int = 64
    """Ranks of a host up to which each pair is compared for time: hosts have up to 16 devices, racks 72."""
    host_neighbours: int = 2
    """Ranks behind each one in a collective with which it is compared on larger hosts: each meets its own clock."""
    collectives: int = 20_000
    """Collectives that clocks are estimated from, of all or of one group, evenly spread; for time."""
    clock_cells: int = 1 << 25
    """Clocks times collectives of an estimate: 256 MiB for each table of times; 1,600 clocks use all `collectives`."""
    cells: int = 1 << 22
    """Cells of a table of times, or of places that are compared, that are filled at once: 32 MiB, 0.05 s."""
    pairs_of_times: int = 1 << 28
    """Times of two clocks in one collective that are compared at most: 4 s; up to 115 clocks, all collectives count."""
    rounds: int = 50
    """Rounds of any fit of clocks until it is given up: 5 to 10 of reweighting, 5 to 30 of conjugate gradients, do."""
    margin: int = 8
    """Part of a step, 1 / 8, by which its window is longer at first: calls that begin in a step may end after it."""
    readings: int = 3
    """How often a file is read with longer windows before all of it is taken; the second time nearly always does."""


LIMITS: Final = Tolerances()


class Confidence(IntEnum):
    """How sure an edge is, percent: the rungs of a ladder, each rarer wrong than the next.

    It is shown, and `acyclic` drops the least confident edge of a cycle. On simulated jobs more than 98 % of the waits
    of streams are true. Below `core.kinds.UNCERTAIN` (70), predictions are also made without the edge.
    """

    PROVEN = 100  # an id says so
    SURE = 95  # explains much more than it leaves unexplained; or an id names a part of it
    SEEN = 90  # seen in several occurrences, or a law that the times fit
    NAMED = 85  # names and times say so
    LIKELY = 80  # explains something; or order and kind say so
    ELSEWHERE = 75  # other occurrences of the site show it
    NOT_RECORDED = 70  # the times show it, though no call was recorded
    COUNTED = 65  # no occurrence shows it, but counting, or what programs usually do
    POSSIBLE = 60  # not refuted, and natural
    FIRST_POSSIBLE = 55  # little more than a guess
    EVEN = 50  # as likely as chance; a THREAD edge from here on shows who handed a worker its work
    GUESS = 30  # unknown: the latest moment that could have been the cause
