"""The simulator's enumerations: instructions, event categories and what a duration belongs to."""

from enum import IntEnum, unique


@unique
class Op(IntEnum):
    """An instruction of a rank's host program."""

    BEGIN = 0  # open an event on the current thread, then spend the host work
    END = 1  # spend the host work, then close the event
    WORK = 2  # host time that no event covers
    LAUNCH = 3  # a call that enqueues one work on a stream
    COLLECTIVE = 4  # a call that enqueues this rank's part of a collective
    HOLD = 5  # the call just made returns only when its copy has ended
    RECORD = 6  # record an event on a stream
    WAIT = 7  # let a stream wait for an event
    EVENT_SYNC = 8  # block until an event has happened
    STREAM_SYNC = 9  # block until a stream is empty
    DEVICE_SYNC = 10  # block until every stream is empty
    SPAWN = 11  # hand over to the backward thread
    JOIN = 12  # hand back to the main thread
    CALL = 13  # a runtime call that neither enqueues nor waits
    NODE = 14  # one more work of the CUDA graph that a call launched


@unique
class Category(IntEnum):
    """What an event is; the name in lower case is Kineto's category."""

    CPU_OP = 0
    USER_ANNOTATION = 1
    PYTHON_FUNCTION = 2
    CUDA_RUNTIME = 3
    CUDA_DRIVER = 4
    KERNEL = 5
    GPU_MEMCPY = 6
    GPU_MEMSET = 7

    @property
    def on_device(self) -> bool:
        """Whether the event ran on a stream."""
        return self >= Category.KERNEL

    @property
    def is_call(self) -> bool:
        """Whether the event is a runtime or driver call."""
        return self in (Category.CUDA_RUNTIME, Category.CUDA_DRIVER)


@unique
class Host(IntEnum):
    """What an instruction's host time is."""

    NONE = 0
    PROGRAM = 1  # self time of an op, or Python between ops
    LAUNCH = 2  # own cost of a call that enqueues
    CALL = 3  # own cost of any other runtime call
    LOADER = 4  # waiting for the data loader
    THREAD = 5  # waking a thread


@unique
class DeviceWork(IntEnum):
    """What an instruction's device time is."""

    NONE = 0
    COMPUTE = 1
    MEMCPY = 2
    MEMSET = 3
    COLLECTIVE = 4


@unique
class Purpose(IntEnum):
    """The streams of randomness."""

    HOST = 1
    LATENCY = 2
    DEVICE = 3
    GAP = 4
    SKEW = 5
    TRAFFIC = 6
