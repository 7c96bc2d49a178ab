"""Edge rules, one file each, and `RULES`, their order."""

from collections.abc import Callable

from htagraph.graph.activities import Edges
from htagraph.graph.evidence.job import RecordedJob
from htagraph.graph.rules.autograd import autograd
from htagraph.graph.rules.body import body
from htagraph.graph.rules.collective import collective
from htagraph.graph.rules.cuda_graph import cuda_graph
from htagraph.graph.rules.dataloader import dataloader
from htagraph.graph.rules.event_wait import event_wait
from htagraph.graph.rules.host_order import host_order
from htagraph.graph.rules.host_sync import host_sync
from htagraph.graph.rules.launch import launch
from htagraph.graph.rules.memcpy_sync import memcpy_sync
from htagraph.graph.rules.outside import outside
from htagraph.graph.rules.p2p import p2p
from htagraph.graph.rules.queue_full import queue_full
from htagraph.graph.rules.step import step
from htagraph.graph.rules.stream import stream
from htagraph.graph.rules.thread import thread

__all__ = ["RULES"]

RULES: tuple[Callable[[RecordedJob], Edges], ...] = (
    host_order, dataloader, outside, body, launch, cuda_graph, stream, autograd, step, thread, event_wait,
    host_sync, memcpy_sync, queue_full, collective, p2p,
)  # fmt: skip
"""The edge rules, in the order of their edges; of equal parallel edges, the one of the earlier rule is kept."""
