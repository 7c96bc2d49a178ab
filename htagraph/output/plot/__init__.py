"""``hg.plot``: results as plotly figures, one function of the same name per result; none shows its figure."""

from htagraph.output.plot import breakdowns, counters, kernels
from htagraph.output.plot import timeline as _timeline
from htagraph.output.plot import what_if as _what_if
from htagraph.output.plot.breakdowns import *  # noqa: F403
from htagraph.output.plot.counters import *  # noqa: F403
from htagraph.output.plot.kernels import *  # noqa: F403
from htagraph.output.plot.timeline import *  # noqa: F403
from htagraph.output.plot.what_if import *  # noqa: F403

__all__ = [
    *breakdowns.__all__, *counters.__all__, *kernels.__all__, *_timeline.__all__, *_what_if.__all__,
]  # fmt: skip
