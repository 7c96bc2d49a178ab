// Small graphs whose longest paths are the times of a job, for any factors of its classes of time.

import { summed, unzipped } from "./payload.js";

/** Return all numbers of variable length in some bytes; they are exact up to 2^53. */
function numbersIn(bytes) {
  const numbers = new Float64Array(bytes.length);
  let count = 0;
  for (let at = 0; at < bytes.length; count++) {
    let value = 0;
    let unit = 1;
    for (; bytes[at] > 127; unit *= 128) value += (bytes[at++] - 128) * unit;
    numbers[count] = value + bytes[at++] * unit;
  }
  return numbers;
}

/** Return functions that take numbers one after the other. */
function readerOf(numbers) {
  let at = 0;
  const one = () => numbers[at++];
  const take = (count) => numbers.subarray(at, (at += count));
  const signed = (count) => {
    const values = take(count);
    for (let i = 0; i < count; i++) {
      const half = Math.floor(values[i] / 2);
      values[i] = 2 * half === values[i] ? half : -half - 1;
    }
    return values;
  };
  return { one, take, signed, sums: (count) => summed(signed(count)) };
}

/** Return a skeleton, as skeleton_bytes.py describes its bytes; its weights are multiples of a unit, ns. */
export async function skeletonOf(bytes, unit) {
  const read = readerOf(numbersIn(await unzipped(bytes)));
  if (read.one() !== 1) throw new Error("another version of the format of skeletons");
  read.signed(1);
  const classes = JSON.parse(Array.from(read.take(read.one()), (letter) => String.fromCharCode(letter)).join(""));
  const [vertices, terminals, edges] = read.take(3);
  const vertex = read.sums(vertices);
  read.sums(terminals);
  const first = new Int32Array(vertices + 1);
  first.set(summed(read.take(vertices)), 1);
  const source = new Int32Array(read.take(edges));
  for (let i = 0; i < vertices; i++) for (let e = first[i]; e < first[i + 1]; e++) source[e] = i - source[e];
  const weights = (count) => read.signed(count).map((value) => value * unit);
  const rest = weights(edges);
  const amounts = classes.parts.map((part) => {
    const count = read.one();
    return { part, rows: new Int32Array(read.sums(count)), ns: weights(count) };
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
  weigh(skeleton, factors);
  return replayed(skeleton);
}

/** Give edges the weights, ns, that they have for the factor of each class. */
function weigh({ rest, amounts, weight }, factors) {
  weight.set(rest);
  for (const { part, rows, ns } of amounts) {
    const factor = productOf(part, factors);
    for (let i = 0; i < rows.length; i++) weight[rows[i]] += ns[i] * factor;
  }
}

/** Return the moment of each vertex, ns, for the weights that edges have. */
function replayed({ first, source, weight }) {
  const time = new Float64Array(first.length - 1);
  for (let v = 1; v < time.length; v++) {
    let latest = first[v] < first[v + 1] ? -Infinity : 0;
    for (let e = first[v]; e < first[v + 1]; e++) {
      const moment = time[source[e]] + weight[e];
      if (moment > latest) latest = moment;
    }
    time[v] = latest;
  }
  return time;
}

/** Return the moments for some factors of one class: weights are linear in each factor, so two of them give all. */
export function momentsAlong(skeleton, factors, which, along) {
  const { weight } = skeleton;
  const [none, whole] = [0, 1].map((factor) => {
    weigh(skeleton, factors.with(which, factor));
    return weight.slice();
  });
  return along.map((factor) => {
    for (let e = 0; e < weight.length; e++) weight[e] = none[e] + factor * (whole[e] - none[e]);
    return replayed(skeleton);
  });
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

/** Return compressed numbers of two bytes each, the first one the lowest, each 1 more than it stands for. */
export async function ranksOf(bytes) {
  const raw = await unzipped(bytes);
  return Array.from({ length: raw.length / 2 }, (_, i) => raw[2 * i] + 256 * raw[2 * i + 1] - 1);
}
