// Small graphs whose longest paths are the times of a job, for any factors of its classes of time.

import { unzipped } from "./payload.js";

/** Return the bytes of a zlib stream. */
async function inflated(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return functions that read numbers of variable length one after the other; they are exact up to 2^53. */
function numbersOf(bytes) {
  let at = 0;
  const one = () => {
    let value = 0;
    let unit = 1;
    for (; bytes[at] > 127; unit *= 128) value += (bytes[at++] - 128) * unit;
    return value + bytes[at++] * unit;
  };
  const signed = () => {
    const value = one();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  };
  const sums = (count) => {
    const values = new Float64Array(count);
    for (let i = 0, sum = 0; i < count; i++) values[i] = sum += signed();
    return values;
  };
  const text = (count) => new TextDecoder().decode(bytes.subarray(at, (at += count)));
  return { one, signed, sums, text };
}

/** Return a skeleton, as skeleton_bytes.py describes its bytes; its weights are multiples of a unit, ns. */
export async function skeletonOf(bytes, unit) {
  const read = numbersOf(await inflated(bytes));
  if (read.one() !== 1) throw new Error("another version of the format of skeletons");
  read.signed();
  const classes = JSON.parse(read.text(read.one()));
  const [vertices, terminals, edges] = [read.one(), read.one(), read.one()];
  const vertex = read.sums(vertices);
  read.sums(terminals);
  const first = new Int32Array(vertices + 1);
  for (let i = 0; i < vertices; i++) first[i + 1] = first[i] + read.one();
  const source = new Int32Array(edges);
  for (let i = 0; i < vertices; i++) for (let e = first[i]; e < first[i + 1]; e++) source[e] = i - read.one();
  const rest = new Float64Array(edges);
  for (let e = 0; e < edges; e++) rest[e] = read.signed() * unit;
  const amounts = classes.parts.map((part) => {
    const rows = read.sums(read.one());
    return { part, rows, ns: Float64Array.from(rows, () => read.signed() * unit) };
  });
  const steps = stepsIn(read, vertex);
  return { vertex, first, source, rest, amounts, steps, end: vertex.indexOf(-2), weight: new Float64Array(edges) };
}

/** Return the steps: of each rank and step, the places of its start and its end among the vertices. */
function stepsIn(read, vertex) {
  const count = read.one();
  read.one();
  const [rank, step, start, end] = [0, 0, 0, 0].map(() => read.sums(count));
  const place = new Map(Array.from(vertex, (number, at) => [number, at]));
  return Array.from(rank, (_, i) => ({
    rank: rank[i], step: step[i], start: place.get(start[i]), end: place.get(end[i]),
  }));
}

/** Return the product of the factors of some classes. */
function productOf(part, factors) {
  let product = 1;
  for (const each of part) product *= factors[each];
  return product;
}

/** Return the moment of each vertex, ns, for the factor of each class. */
export function momentsOf(skeleton, factors) {
  const { first, source, rest, amounts, weight } = skeleton;
  weight.set(rest);
  for (const { part, rows, ns } of amounts) {
    const factor = productOf(part, factors);
    for (let i = 0; i < rows.length; i++) weight[rows[i]] += ns[i] * factor;
  }
  const time = new Float64Array(first.length - 1);
  for (let v = 1; v < time.length; v++) {
    let latest = first[v] < first[v + 1] ? -Infinity : 0;
    for (let e = first[v]; e < first[v + 1]; e++) latest = Math.max(latest, time[source[e]] + weight[e]);
    time[v] = latest;
  }
  return time;
}

/** Return the edges of a longest path to the end of the job, the last one first; weights are those of the moments. */
export function longestPath({ first, source, weight, end }, time) {
  const path = [];
  for (let v = end; first[v] < first[v + 1];) {
    let edge = first[v];
    for (let e = edge; e < first[v + 1]; e++) {
      if (time[source[e]] + weight[e] > time[source[edge]] + weight[edge]) edge = e;
    }
    path.push({ edge, target: v });
    v = source[edge];
  }
  return path;
}

/** Return the time of each class along a path, ns, and of each set of classes: {byClass, byPart}; the first is no class. */
export function timesOnPath({ rest, amounts }, path, factors) {
  const onPath = new Uint8Array(rest.length);
  for (const { edge } of path) onPath[edge] = 1;
  const byPart = [{ part: [], ns: path.reduce((sum, { edge }) => sum + rest[edge], 0) }];
  for (const { part, rows, ns } of amounts) {
    const factor = productOf(part, factors);
    let sum = 0;
    for (let i = 0; i < rows.length; i++) if (onPath[rows[i]]) sum += ns[i] * factor;
    byPart.push({ part, ns: sum });
  }
  const byClass = factors.map((_, number) =>
    byPart.reduce((sum, { part, ns }) => sum + (part.includes(number) ? ns : 0), 0));
  return { byClass, byPart };
}

/** Return the time on a path by rank, ns; `ranks` has that of each vertex, -1 for those between ranks. */
export function timesByRank({ source, weight }, path, ranks) {
  const times = new Map();
  for (const { edge, target } of path) {
    const rank = ranks[target] >= 0 ? ranks[target] : ranks[source[edge]];
    times.set(rank, (times.get(rank) ?? 0) + weight[edge]);
  }
  return times;
}

/** Return gzipped numbers of two bytes each, the first one the lowest, each 1 more than it stands for. */
export async function ranksOf(bytes) {
  const raw = await unzipped(bytes);
  return Array.from({ length: raw.length / 2 }, (_, i) => raw[2 * i] + 256 * raw[2 * i + 1] - 1);
}
