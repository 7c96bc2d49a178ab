"""What can be changed in a job: one file and one function of the same name each, from a state to another."""

from htagraph.changes.cuda_graph import cuda_graph
from htagraph.changes.fix_straggler import fix_straggler
from htagraph.changes.free_dataloader import free_dataloader
from htagraph.changes.fuse import fuse
from htagraph.changes.infinite_gpu import infinite_gpu
from htagraph.changes.infinite_host import infinite_host
from htagraph.changes.inject import inject
from htagraph.changes.jitter import jitter
from htagraph.changes.move_to_stream import move_to_stream
from htagraph.changes.network import network
from htagraph.changes.no_launch_overhead import no_launch_overhead
from htagraph.changes.no_overlap import no_overlap
from htagraph.changes.perfect_overlap import perfect_overlap
from htagraph.changes.remove import remove
from htagraph.changes.remove_sync import remove_sync
from htagraph.changes.scale import scale
from htagraph.changes.scale_network import scale_network
from htagraph.changes.scale_ranks import scale_ranks
from htagraph.changes.set_duration import set_duration

__all__ = [
    "cuda_graph",
    "fix_straggler",
    "free_dataloader",
    "fuse",
    "infinite_gpu",
    "infinite_host",
    "inject",
    "jitter",
    "move_to_stream",
    "network",
    "no_launch_overhead",
    "no_overlap",
    "perfect_overlap",
    "remove",
    "remove_sync",
    "scale",
    "scale_network",
    "scale_ranks",
    "set_duration",
]
