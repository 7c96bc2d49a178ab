"""Communication between ranks: arguments of collectives, wherever they appear."""

from typing import Annotated

from pydantic import Field

from htagraph.trace.events.base import ActivityArgs, Args, Column, Event, Int, Ranks, arg, parse_ranks

__all__ = ["CollectiveArgs", "CollectiveComm", "CollectiveCommArgs"]


class CollectiveArgs(Args):
    """Arguments of one rank's part in a collective: on `record_param_comms`, and copied to its kernel."""

    collective_name: Annotated[str | None, Column("collective_name", "str", "")] = arg(
        "Collective name", about="Operation, such as allreduce; wait moves no data"
    )
    in_msg_nelems: Annotated[Int | None, Column("in_msg_nelems", "int64", -1)] = arg(
        "In msg nelems", about="Elements sent by this rank, count"
    )
    out_msg_nelems: Annotated[Int | None, Column("out_msg_nelems", "int64", -1)] = arg(
        "Out msg nelems", about="Elements received by this rank, count"
    )
    group_size: Annotated[Int | None, Column("group_size", "int64", -1)] = arg(
        "Group size", about="Ranks of the process group, count"
    )
    dtype: Annotated[str | None, Column("dtype", "str", "")] = arg(
        "dtype", about="Type of an element as c10 names it, such as BFloat16"
    )
    in_split_size: str | None = arg("In split size", about="Elements sent to each rank, as text; count")
    out_split_size: str | None = arg("Out split size", about="Elements received from each rank, as text; count")
    process_group_name: Annotated[str | None, Column("pg_name", "str", "")] = arg(
        "Process Group Name", about="Name of the group: a counter, unique only within the job"
    )
    process_group_description: Annotated[str | None, Column("pg_desc", "str", "")] = arg(
        "Process Group Description", about="Purpose of the group, such as default_pg"
    )
    process_group_id: Int | None = arg("Process Group ID", about="Number of the group, before 2024-04")
    process_group_ranks: Annotated[Ranks | None, Column("pg_ranks", "str", "")] = arg(
        "Process Group Ranks", about="Global ranks as text, maybe cut short; see the property ranks"
    )
    global_rank_start: Int | None = arg("Global rank start", about="First global rank; -1 if unknown")
    global_rank_stride: Int | None = arg("Global rank stride", about="Distance between ranks; 0 if irregular")
    rank: Int | None = arg("Rank", about="Rank within the group; of the peer for send and recv")
    src_rank: Annotated[Int | None, Column("src_rank", "int64", -1)] = arg(
        "Src Rank", about="Global rank that sends, point to point only"
    )
    dst_rank: Annotated[Int | None, Column("dst_rank", "int64", -1)] = arg(
        "Dst Rank", about="Global rank that receives, point to point only"
    )
    seq: Annotated[Int | None, Column("seq", "int64", -1)] = arg(
        "Seq", about="Counter of the group's collectives; the same on all ranks"
    )
    comms_id: Annotated[Int | None, Column("comms_id", "uint64", 0)] = arg(
        "Comms Id", about="Hash of group and Seq, up to 2^64-1; the same on all ranks"
    )
    is_async: bool | None = arg("Is asynchronized op", about="Whether the caller did not wait")
    input_tensors_start: str | None = arg("Input Tensors start", about="Addresses of the inputs, as text")
    output_tensors_start: str | None = arg("Output Tensors start", about="Addresses of the outputs, as text")

    @property
    def ranks(self) -> list[int] | None:
        """The group's global ranks, or nothing where they are absent or cut short beyond rebuilding."""
        return parse_ranks(
            self.process_group_ranks,
            start=self.global_rank_start,
            stride=self.global_rank_stride,
            size=self.group_size,
        )


class CollectiveCommArgs(ActivityArgs, CollectiveArgs):
    """Arguments of `CollectiveComm`."""

    communicator_id: Int | None = arg("Communicator_id", about="Id of the oneCCL communicator")


class CollectiveComm(Event):
    """A collective as the communication library recorded it on the host (XPU, `xccl::...`)."""

    args: CollectiveCommArgs = Field(default_factory=CollectiveCommArgs)
