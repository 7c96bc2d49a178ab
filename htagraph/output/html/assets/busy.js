// How long lanes are busy, and what a part of the timeline holds.
import { firstAfter } from "./model.js";

const NO_WORK = new Set(["step", "annotation"]); // kinds that only frame other slices

/** Return the slices of rows that run between two moments, in the order of rows. */
export function slicesIn(model, rows, from, to) {
  const found = [];
  for (const row of rows) {
    const { first, last } = model.rows[row];
    for (let i = firstAfter(model.end, from, first, last); i < last && model.start[i] < to; i++) found.push(i);
  }
  return found;
}

/** Return how long at least one of some slices runs between two moments, ns. */
export function unionOf(model, slices, from, to) {
  const { start, end } = model;
  let total = 0;
  let until = from;
  for (const slice of [...slices].sort((a, b) => start[a] - start[b])) {
    const right = Math.min(end[slice], to);
    if (right <= until) continue;
    total += right - Math.max(start[slice], until);
    until = right;
  }
  return total;
}

/** Return whether a slice is work or a call, and no frame around other slices. */
export function isWork(model, slice) {
  return !NO_WORK.has(model.kinds[model.kindOf[model.name[slice]]]);
}

/** Return how long each lane is busy in the whole job, ns; made once. */
export function busyOf(model) {
  model.busy ??= model.lanes.map((_, lane) => {
    const rows = model.rows.map((row, number) => (row.lane === lane ? number : -1)).filter((row) => row >= 0);
    const slices = slicesIn(model, rows, -Infinity, Infinity).filter((slice) => isWork(model, slice));
    return unionOf(model, slices, -Infinity, Infinity);
  });
  return model.busy;
}

/**
 * Return the sums of an area: `length` (ns), `lanes` (how many), `busy` (ns that lanes are busy, summed over lanes) and
 * `kinds`, the longest first: {kind, count, time}, time being how long lanes have such a slice, summed over lanes.
 */
export function sumsOf(model, { from, to, rows }) {
  const byLane = new Map();
  for (const row of rows) {
    const { lane } = model.rows[row];
    byLane.set(lane, [...(byLane.get(lane) ?? []), row]);
  }
  const kinds = new Map();
  let busy = 0;
  for (const ofLane of byLane.values()) {
    const slices = slicesIn(model, ofLane, from, to);
    busy += unionOf(model, slices.filter((slice) => isWork(model, slice)), from, to);
    for (const [kind, those] of byKind(model, slices)) {
      const sum = kinds.get(kind) ?? { kind: model.kinds[kind], count: 0, time: 0 };
      sum.count += those.length;
      sum.time += unionOf(model, those, from, to);
      kinds.set(kind, sum);
    }
  }
  const listed = [...kinds.values()].sort((a, b) => b.time - a.time);
  return { length: to - from, lanes: byLane.size, busy, kinds: listed };
}

function byKind(model, slices) {
  const groups = new Map();
  for (const slice of slices) {
    const kind = model.kindOf[model.name[slice]];
    if (!groups.has(kind)) groups.set(kind, []);
    groups.get(kind).push(slice);
  }
  return groups;
}

/** Return the numbers of the collectives that run between two moments, the longest first, at most some. */
export function collectivesIn(model, from, to, most) {
  const { from: begin, until } = model.members;
  const found = [];
  for (const i of (model.members.byLength ??= longestFirst(model.members))) {
    if (until[i] >= from && begin[i] <= to) found.push(i);
    if (found.length === most) break;
  }
  return found;
}

function longestFirst({ first, from, until }) {
  const numbers = Array.from(from, (_, i) => i).filter((i) => first[i + 1] - first[i] > 1);
  return numbers.sort((a, b) => until[b] - from[b] - (until[a] - from[a]));
}
