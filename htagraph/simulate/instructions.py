"""What each instruction does to a rank.

Each function returns None, or the untimed device work that it needs first; then it has changed nothing.
"""

from collections.abc import Callable

from htagraph.simulate.codes import Op
from htagraph.simulate.device import enqueue, latency_ns
from htagraph.simulate.state import Code, RankState, Work
from htagraph.simulate.template import Instruction, Template


def compile_code(template: Template) -> list[Code]:
    """Return a template's instructions with the function that executes each."""
    return [(_EXECUTE[instruction.op], instruction) for instruction in template.instructions]


def _begin(rank: RankState, position: int, instruction: Instruction) -> None:
    rank.start[instruction.call] = rank.now
    rank.now += rank.cost.host[position]


def _end(rank: RankState, position: int, instruction: Instruction) -> None:
    rank.now += rank.cost.host[position]
    rank.end[instruction.call] = rank.now


def _pass(rank: RankState, position: int, instruction: Instruction) -> None:
    rank.now += rank.cost.host[position]


def _call(rank: RankState, position: int, instruction: Instruction) -> None:
    rank.start[instruction.call] = rank.now
    rank.now += rank.cost.host[position]
    rank.end[instruction.call] = rank.now


def _launch(rank: RankState, position: int, instruction: Instruction) -> Work | None:
    stream = rank.streams[instruction.stream]
    oldest = stream.ring[stream.count % len(stream.ring)]
    if isinstance(oldest, Work):
        if oldest.end < 0:
            return oldest
        oldest = oldest.end
    rank.start[instruction.call] = now = rank.now
    ready = now + rank.cost.latency[position]
    back = now + rank.cost.host[position]
    rank.end[instruction.call] = rank.now = oldest if oldest > back else back
    stream.ring[stream.count % len(stream.ring)] = _follow_stream(rank, position, instruction, ready)
    stream.count += 1
    return None


def _follow_stream(rank: RankState, position: int, instruction: Instruction, ready: int) -> int | Work:
    """Let work start behind what is on its stream; return its end, or the work while that is not known."""
    stream = rank.streams[instruction.stream]
    if stream.pending or stream.blockers or instruction.kind:
        return enqueue(rank, position, instruction, ready)
    start = max(ready, stream.tail + rank.cost.gap[position], stream.until)
    end = start + rank.cost.device[position]
    rank.start[instruction.work] = start
    rank.end[instruction.work] = end
    stream.tail = end
    return end


def _node(rank: RankState, position: int, instruction: Instruction) -> None:
    _follow_stream(rank, position, instruction, rank.start[instruction.call] + rank.cost.latency[position])


def _record(rank: RankState, position: int, instruction: Instruction) -> None:
    _call(rank, position, instruction)
    stream = rank.streams[instruction.stream]
    rank.slots[instruction.slot] = stream.pending[-1] if stream.pending else stream.tail


def _wait(rank: RankState, position: int, instruction: Instruction) -> None:
    _call(rank, position, instruction)
    stream = rank.streams[instruction.stream]
    awaited = rank.slots[instruction.slot]
    if isinstance(awaited, Work):
        if awaited.end < 0:
            stream.blockers.append(awaited)
            return
        awaited = awaited.end
    stream.until = max(stream.until, awaited + latency_ns(rank.engine.job))


def _hold(rank: RankState, position: int, instruction: Instruction) -> Work | None:
    stream = rank.streams[instruction.stream]
    if position in rank.cost.released:
        return None
    if stream.pending:
        return stream.pending[-1]
    rank.now = max(rank.now, stream.tail + rank.cost.latency[position])
    rank.end[instruction.call] = rank.now
    return None


def _block(rank: RankState, position: int, instruction: Instruction, ends: list[int]) -> None:
    """Return from a blocking call at the end of what it waits for."""
    _call(rank, position, instruction)
    if ends and position not in rank.cost.released:
        rank.now = max(rank.now, max(ends) + rank.cost.latency[position])
        rank.end[instruction.call] = rank.now


def _event_sync(rank: RankState, position: int, instruction: Instruction) -> Work | None:
    awaited = rank.slots[instruction.slot]
    if isinstance(awaited, Work):
        if awaited.end < 0 and position not in rank.cost.released:
            return awaited
        awaited = awaited.end
    _block(rank, position, instruction, [awaited])
    return None


def _stream_sync(rank: RankState, position: int, instruction: Instruction) -> Work | None:
    stream = rank.streams[instruction.stream]
    if stream.pending and position not in rank.cost.released:
        return stream.pending[-1]
    _block(rank, position, instruction, [stream.tail] if stream.count else [])
    return None


def _device_sync(rank: RankState, position: int, instruction: Instruction) -> Work | None:
    if position not in rank.cost.released:
        for stream in rank.streams:
            if stream.pending:
                return stream.pending[-1]
    _block(rank, position, instruction, [stream.tail for stream in rank.streams if stream.count])
    return None


_EXECUTE: dict[Op, Callable[[RankState, int, Instruction], Work | None]] = {
    Op.BEGIN: _begin,
    Op.END: _end,
    Op.WORK: _pass,
    Op.SPAWN: _pass,
    Op.JOIN: _pass,
    Op.CALL: _call,
    Op.LAUNCH: _launch,
    Op.COLLECTIVE: _launch,
    Op.NODE: _node,
    Op.HOLD: _hold,
    Op.RECORD: _record,
    Op.WAIT: _wait,
    Op.EVENT_SYNC: _event_sync,
    Op.STREAM_SYNC: _stream_sync,
    Op.DEVICE_SYNC: _device_sync,
}
