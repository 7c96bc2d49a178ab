"""What can be changed in a job: one file and one function of the same name each, from a state to another."""

from htagraph.whatif.changes.cuda_graph import cuda_graph
from htagraph.whatif.changes.fix_straggler import fix_straggler
from htagraph.whatif.changes.free_dataloader import free_dataloader
from htagraph.whatif.changes.fuse import fuse
from htagraph.whatif.changes.infinite_gpu import infinite_gpu
from htagraph.whatif.changes.infinite_host import infinite_host
from htagraph.whatif.changes.inject import inject
from htagraph.whatif.changes.jitter import jitter
from htagraph.whatif.changes.move_to_stream import move_to_stream
from htagraph.whatif.changes.network import network
from htagraph.whatif.changes.no_interruptions import no_interruptions
from htagraph.whatif.changes.no_launch_overhead import no_launch_overhead
from htagraph.whatif.changes.no_overlap import no_overlap
from htagraph.whatif.changes.perfect_overlap import perfect_overlap
from htagraph.whatif.changes.remove import remove
from htagraph.whatif.changes.remove_sync import remove_sync
from htagraph.whatif.changes.scale import scale
from htagraph.whatif.changes.scale_network import scale_network
from htagraph.whatif.changes.scale_ranks import scale_ranks
from htagraph.whatif.changes.set_duration import set_duration
from htagraph.whatif.changes.shared_link import shared_link

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
    "no_interruptions",
    "no_launch_overhead",
    "no_overlap",
    "perfect_overlap",
    "remove",
    "remove_sync",
    "scale",
    "scale_network",
    "scale_ranks",
    "set_duration",
    "shared_link",
]
