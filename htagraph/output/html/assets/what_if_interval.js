// Predictions and their intervals: the formulas of outcome.py and interval.py.

import { momentsAlong, momentsOf } from "./what_if_model.js";

/** Return {makespan, step, steps, time}, ns: what a job takes under one reading. */
export function predicted(reading, factors) {
  const { skeleton, ratio } = reading;
  const time = momentsOf(skeleton, factors);
  return { makespan: time[skeleton.end] * ratio, step: usualStep(skeleton, time), time };
}

/** Return how long a step usually takes, ns, for some factors of one class. */
export function stepsAlong({ skeleton }, factors, which, along) {
  return momentsAlong(skeleton, factors, which, along).map((time) => usualStep(skeleton, time));
}

/** Return how long a regular step takes, ns, on average; without two steps the mean over all ranks; the makespan without steps. */
function usualStep(skeleton, time) {
  const { steps, end, paced } = skeleton;
  if (!steps.length) return time[end];
  const between = lengthsOf(steps, time, paced.ends);
  const known = paced.ends ? between : [...between, ...lastOf(steps, time, between)];
  const counted = known.filter(({ step }) => paced.counted.includes(step)).map(({ ns }) => ns);
  if (counted.length) return meanOf(counted);
  const from = Math.min(...steps.map(({ start }) => time[start]));
  const to = Math.max(...steps.map((each) => time[each.end]));
  return (to - from) / new Set(steps.map(({ step }) => step)).size;
}

/** Return {step, ns}: the time of each step from end to end, or from begin to begin; mean over ranks. */
function lengthsOf(steps, time, ends) {
  const mark = ({ start, end }) => time[ends ? end : start];
  const sums = new Map();
  for (let i = 1; i < steps.length; i++) {
    if (steps[i].rank !== steps[i - 1].rank || steps[i].step !== steps[i - 1].step + 1) continue;
    const { step } = steps[ends ? i : i - 1];
    const [sum, count] = sums.get(step) ?? [0, 0];
    sums.set(step, [sum + mark(steps[i]) - mark(steps[i - 1]), count + 1]);
  }
  return [...sums].sort(([one], [other]) => one - other).map(([step, [sum, count]]) => ({ step, ns: sum / count }));
}

/** Return {step, ns}: the time of the last step, which no other one follows, from begin to end; mean over ranks. */
function lastOf(steps, time, between) {
  const known = Math.max(-1, ...between.map(({ step }) => step));
  const last = steps.filter(({ rank, step }, i) => step > known && steps[i + 1]?.rank !== rank);
  const ns = last.map(({ start, end }) => time[end] - time[start]);
  return between.length && last.length ? [{ step: last[0].step, ns: meanOf(ns) }] : [];
}

/** Return {low, high, cause}: the 90 % interval of a speedup. */
export function intervalOf(job, recorded, now, factors, constants) {
  const speedup = recorded.makespan / now.makespan;
  if (!(now.makespan > 0) || !(recorded.makespan > 0)) return { low: speedup, high: speedup, cause: "" };
  if (job.asRecorded && factors.every((factor) => factor === 1)) return { low: 1, high: 1, cause: "" };
  const ratios = [{ log: 0, cause: "" }];
  const all = stepTimesOf(job.readings[0], now.time);
  for (const reading of job.readings.slice(1)) {
    const { makespan: other, time } = predicted(reading, factors);
    if (other > 0) ratios.push({ log: Math.log(now.makespan / other), cause: reading.cause });
    if (reading.ratio === 1) ratios.push({ log: byStepsOf(all, stepTimesOf(reading, time), speedup), cause: reading.cause });
  }
  ratios.push({ log: aheadOf(recorded, now.makespan, all, constants), cause: constants.steps_ahead });
  if (job.ceiling) ratios.push({ log: underLoadOf(speedup, constants), cause: constants.slower_under_load });
  const logs = ratios.map(({ log }) => log);
  const steps = all.filter((ns) => ns > 0);
  const chance = spreadOf(speedup, steps, constants);
  const byChance = steps.length > 1 ? constants.steps_differ : constants.unknown_spread;
  const widest = ratios.reduce((one, other) => (Math.abs(other.log) > Math.abs(one.log) ? other : one));
  return {
    low: speedup * Math.exp(Math.min(...logs) - chance),
    high: speedup * Math.exp(Math.max(...logs) + (job.ceiling ? withoutEffect(chance, speedup, constants) : chance)),
    cause: Math.abs(widest.log) > chance ? widest.cause : byChance,
  };
}

function stepTimesOf(reading, time) {
  return lengthsOf(reading.skeleton.steps, time, true).map(({ ns }) => ns);
}

/** Return the logarithm by which steps are longer under another reading, at most 0; it turns no gain into a loss. */
function byStepsOf(steps, others, speedup) {
  const ratio = sumOf(steps) / Math.max(sumOf(others), 1);
  if (steps.length < 2 || others.length !== steps.length || ratio <= 0 || ratio >= 1) return 0;
  return speedup > 1 ? Math.max(Math.log(ratio), -Math.log(speedup)) : Math.log(ratio);
}

/** Return the logarithm by which steps shorten more than the job, where other work ends later behind them; else 0. */
function aheadOf(recorded, makespan, steps, { wide }) {
  const sum = sumOf(steps);
  const extra = makespan - sum - (recorded.makespan - recorded.steps);
  const log = -Math.log1p(Math.max(extra, 0) / Math.max(sum, 1));
  return steps.length > 1 && log < -Math.log1p(wide) ? log : 0;
}

/** Return the logarithm by which a ceiling is missed where other work is slower without pauses; 0 for no gain. */
function underLoadOf(speedup, { under_load }) {
  return speedup > 1 ? -Math.log1p(under_load * (1 - 1 / speedup)) : 0;
}

/** Return the half width of an interval, in logarithms, without how far an effect may be off. */
function withoutEffect(chance, speedup, { quantile, effect_spread }) {
  const effect = quantile * effect_spread * Math.abs(Math.log(speedup));
  return Math.sqrt(Math.max(chance ** 2 - effect ** 2, 0));
}

/** Return whether an interval is too wide to act on. */
export function tooWide({ low, high, cause }, { wide, very_wide, unknown_spread }) {
  if (cause === unknown_spread) return false;
  return high / low - 1 > very_wide || (high / low - 1 > wide && low < 1 && high > 1);
}

function spreadOf(speedup, steps, constants) {
  const { quantile, run_spread, effect_spread } = constants;
  const effect = effect_spread * Math.abs(Math.log(speedup));
  const mean = ofMean(steps, constants);
  return Math.hypot(mean, quantile * Math.hypot(run_spread, effect));
}

function ofMean(steps, { quantile, shared, unknown_step_spread, max_period, min_groups }) {
  const widths = [];
  for (let size = 1; size <= max_period; size++) {
    const groups = Math.floor(steps.length / size);
    if (groups < (size === 1 ? 2 : min_groups)) break;
    const means = Array.from({ length: groups }, (_, i) => meanOf(steps.slice(i * size, (i + 1) * size)));
    const mean = meanOf(means);
    const variance = means.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (groups - 1);
    widths.push(studentOf(groups - 1, quantile) * Math.SQRT2 * Math.hypot(1 / Math.sqrt(groups), shared) * (Math.sqrt(variance) / mean));
  }
  if (!widths.length) return quantile * Math.SQRT2 * unknown_step_spread;
  const best = Math.min(...widths);
  const width = best < widths[0] / 2 ? best : widths[0];
  return Math.min(width, Math.log(Math.max(...steps) / Math.min(...steps)));
}

function sumOf(values) {
  return values.reduce((sum, each) => sum + each, 0);
}

function meanOf(values) {
  return sumOf(values) / values.length;
}

/** Return the 95th percentile of Student's t distribution, to the second order. */
function studentOf(freedom, z) {
  return z + (z ** 3 + z) / 4 / freedom + (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96 / freedom ** 2;
}
