// The what-if panel: sliders whose step time, critical path and interval are computed in the page.

import { dataOf, jsonOf } from "./payload.js";
import { timeText, made, fitted } from "./words.js";
import { longestPath, momentsOf, ranksOf, skeletonOf, timesByRank, timesOnPath } from "./what_if_model.js";
import { intervalOf, predicted, stepsAlong, tooWide } from "./what_if_interval.js";
import { curveOf, legendOf, stackedBars, stepBars, widthOf } from "./what_if_chart.js";
import { starts } from "./page.js";

const MOST_STEPS = 12;
const MOST_LETTERS = 60;
const POINTS = 21;
const SAFE = /^[\w@%+=:,./-]+$/;

/**
 * Return the panel's model: everything that Python embedded. Jobs are unpacked when they are needed: `firstOf` gives one
 * with its first reading, of which everything but intervals is made, `jobOf` with all.
 */
export function panelOf(header, bytes) {
  const slice = ({ at, size }) => bytes.subarray(at, at + size);
  const jobs = header.jobs.map((job, number) => ({ ...job, asRecorded: number === 0, pieces: job.readings, readings: [] }));
  const unpack = async (job, pieces) => {
    for (const each of pieces) {
      const skeleton = await skeletonOf(slice(each), each.unit);
      job.readings.push({ ...each, skeleton: { ...skeleton, paced: header.paced } });
    }
    return job;
  };
  const first = async (job) => {
    job.ranks = await ranksOf(slice(job.ranks));
    return unpack(job, job.pieces.slice(0, 1));
  };
  const firstOf = (number) => (jobs[number].first ??= first(jobs[number]));
  const whole = async (number) => unpack(await firstOf(number), jobs[number].pieces.slice(1));
  const jobOf = (number) => (jobs[number].whole ??= whole(number));
  return { ...header, jobs, firstOf, jobOf };
}

/** Return what a job takes for some factors: the prediction, and its interval. */
export function answerOf(panel, job, factors) {
  const now = predicted(job.readings[0], factors);
  return { ...now, ...intervalOf(job, panel.recorded, now, factors, panel.constants) };
}

/** Return where the time of the critical path goes: by class, by category, by rank, and the moments. */
export function pathTimes(panel, job, factors) {
  return timesAlongPath(panel, job, factors, momentsOf(job.readings[0].skeleton, factors));
}

/** Return the same for the moments that the weights of the first reading's edges have just given. */
function timesAlongPath(panel, job, factors, time) {
  const { skeleton } = job.readings[0];
  const path = longestPath(skeleton, time);
  const { byClass, byPart } = timesOnPath(skeleton, path, factors);
  const categories = new Map(panel.categories.map(({ name }) => [name, 0]));
  for (const { part, ns } of byPart) {
    const found = panel.categories.find((each) => part.includes(each.number)) ?? panel.categories.at(-1);
    categories.set(found.name, categories.get(found.name) + ns);
  }
  return { byClass, categories, byRank: timesByRank(skeleton, path, job.ranks), time };
}

/** Return a word as a POSIX shell reads it back. */
export function shellWord(word) {
  return SAFE.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
}

/** Return the command that predicts the same. */
export function commandOf(panel, job, factors) {
  const changes = [...job.option];
  factors.forEach((factor, number) => {
    const [option, which] = panel.classes[number].option;
    if (factor !== 1) changes.push(option, `${which}${factor}`);
  });
  return changes.length ? ["htagraph", "what-if", ...panel.inputs, ...changes].map(shellWord).join(" ") : "";
}

function stepsOfPanel(before, after, skeletons) {
  const spans = new Map();
  [[skeletons[0], before], [skeletons[1], after]].forEach(([{ steps }, time], side) => {
    for (const { step, start, end } of steps) {
      const all = spans.get(step) ?? [[Infinity, -Infinity], [Infinity, -Infinity]];
      all[side] = [Math.min(all[side][0], time[start]), Math.max(all[side][1], time[end])];
      spans.set(step, all);
    }
  });
  const length = ([from, to]) => Math.max(to - from, 0);
  return [...spans].map(([step, [old, now]]) => ({ name: `step ${step}`, before: length(old), after: length(now) }));
}

function rangeText(ns, speedup, { low, high }) {
  return `${timeText((ns * speedup) / high)} to ${timeText((ns * speedup) / low)}`;
}

function answerText(panel, job, answer) {
  const { recorded } = panel;
  const speedup = recorded.makespan / answer.makespan;
  const whole = job.missing.length ? "at least" : "90 %:";
  const what = panel.stepped ? "Usual step" : "Job";
  const steps = panel.stepped ? [recorded.step, answer.step] : [recorded.makespan, answer.makespan];
  const lines = [made("p", [
    `${what} `, made("b", `${timeText(steps[0])} → ${timeText(steps[1])}`),
    ` (${whole} ${rangeText(steps[1], speedup, answer)}). The job is `,
    made("b", `${speedup.toFixed(3)} × as fast`), ` (${whole} ${answer.low.toFixed(3)} to ${answer.high.toFixed(3)}), `,
    `${timeText(recorded.makespan)} → ${timeText(answer.makespan)}.`,
  ], "now")];
  if (tooWide(answer, panel.constants)) {
    const sure = Math.log(answer.high / answer.low) > Math.abs(Math.log(speedup)) ? "The recording cannot tell" : "Known only roughly";
    lines.push(made("p", `${sure}, as ${answer.cause}.`, "note"));
  }
  if (job.missing.length) lines.push(made("p", `${panel.words.missing} ${job.missing.join("; ")}.`, "note"));
  return lines;
}

function piecesOf(panel, before, after) {
  const pieces = panel.categories.map(({ name, css }) => ({
    name, css, before: before.categories.get(name), after: after.categories.get(name),
  }));
  return pieces.filter((piece) => piece.before > 0 || piece.after > 0);
}

function rankPieces(before, after) {
  const ranks = [...new Set([...before.byRank.keys(), ...after.byRank.keys()])].sort((one, other) => one - other);
  const css = ["c-computation", "c-communication", "c-memory", "c-waiting", "c-sync", "c-data-loading", "c-launch"];
  return ranks.map((rank, place) => ({
    name: rank < 0 ? "between ranks" : `rank ${rank}`, css: css[place % css.length],
    before: before.byRank.get(rank) ?? 0, after: after.byRank.get(rank) ?? 0,
  })).filter(({ before: old, after: now }) => old > 0 || now > 0);
}

/** Show one answer in the place for it. */
function showAnswer(place, panel, job, state) {
  const answer = answerOf(panel, job, state.factors);
  const after = timesAlongPath(panel, job, state.factors, answer.time);
  const skeletons = [state.recorded, job].map((each) => each.readings[0].skeleton);
  place.answer.replaceChildren(...answerText(panel, job, answer));
  const command = commandOf(panel, job, state.factors);
  place.command.replaceChildren(...(command ? [made("span", panel.words.command), made("code", command)] : []));
  const pieces = piecesOf(panel, state.before, after);
  const ranks = rankPieces(state.before, after);
  const charts = [made("div", [stackedBars(pieces, "Critical path by category", place.width), legendOf(pieces, panel.words.path)])];
  if (ranks.length > 1) {
    charts.push(made("div", [stackedBars(ranks, "Critical path by rank", place.width), legendOf(ranks, panel.words.ranks)]));
  }
  place.path.replaceChildren(...charts);
  const steps = stepsOfPanel(state.before.time, after.time, skeletons);
  const left = steps.length > MOST_STEPS ? [made("p", `The first ${MOST_STEPS} of ${steps.length} steps.`, "note")] : [];
  place.steps.replaceChildren(...(steps.length ? [made("h4", panel.words.steps), stepBars(steps, MOST_STEPS, place.width), ...left] : []));
  showCurve(place, panel, job, state, answer.step);
}

/** Show the step time over all shares of the class that was changed last; kept while nothing else changes. */
function showCurve(place, panel, job, state, step) {
  const others = state.factors.with(state.touched, 1);
  const key = `${state.touched} ${state.start} ${others}`;
  if (state.curve?.key !== key) {
    const factors = Array.from({ length: POINTS }, (_, i) => (2 * i) / (POINTS - 1));
    const times = stepsAlong(job.readings[0], others, state.touched, factors);
    state.curve = { key, points: factors.map((factor, i) => ({ factor, ns: times[i] })) };
  }
  const factor = state.factors[state.touched];
  const { name } = panel.classes[state.touched];
  const chart = curveOf(state.curve.points, { factor, ns: step }, "Step time over the share of its time", place.width);
  const title = made("h4", `${panel.words.curve} ${fitted(name, MOST_LETTERS)}`);
  title.title = name;
  place.curve.replaceChildren(title, chart);
}

function leverOf(row, number, { name }, changed) {
  const slider = made("input");
  Object.assign(slider, { type: "range", min: 0, max: 200, step: 1, value: 100 });
  slider.setAttribute("aria-label", `${fitted(name, MOST_LETTERS)}: percent of its time`);
  const value = made("output", "100 %");
  const reset = made("button", "Reset");
  Object.assign(reset, { type: "button", disabled: true });
  const set = () => {
    value.textContent = `${slider.value} %`;
    reset.disabled = slider.value === "100";
    changed(number, Number(slider.value) / 100);
  };
  slider.addEventListener("input", set);
  reset.addEventListener("click", () => {
    slider.value = 100;
    set();
  });
  row.querySelector(".lever").replaceChildren(slider, value, reset);
  return (factor) => {
    slider.value = 100 * factor;
    set();
    return slider;
  };
}

/** Show the links of findings whose change the panel has, a slider or what the job starts from: that alone is tried. */
function offerTrials(panel, root, moves) {
  for (const link of document.querySelectorAll("a.trial")) {
    const words = JSON.parse(link.dataset.trial);
    const [option, value = ""] = words;
    const [which, factor] = value.split(/:(?=[\d.]+$)/);
    const lever = panel.classes.findIndex(({ option: [own, criteria] }) => own === option && criteria === `${which}:`);
    const start = panel.jobs.findIndex((job) => job.option.length && job.option.join(" ") === words.join(" "));
    if ((lever < 0 || factor === undefined) && start < 0) continue;
    link.hidden = false;
    link.addEventListener("click", (event) => {
      event.preventDefault();
      moves.forEach((move) => move(1));
      const choices = root.querySelectorAll(".starts input");
      choices[Math.max(start, 0)]?.click();
      const moved = start >= 0 ? choices[start] : moves[lever](Number(factor));
      moved.focus({ preventScroll: true });
      root.querySelector(".starts").scrollIntoView({ block: "start" });
    });
  }
}

function choicesOf(panel, changed) {
  const choices = panel.jobs.map(({ name }, number) => {
    const choice = made("input");
    Object.assign(choice, { type: "radio", name: "what-if-start", checked: number === 0 });
    choice.addEventListener("change", () => changed(number));
    return made("label", [choice, ` ${name}`]);
  });
  return panel.jobs.length > 1 ? [made("fieldset", [made("legend", panel.words.starts), ...choices])] : [];
}

async function startPanel(root) {
  const panel = panelOf(jsonOf(dataOf("what-if-header")), dataOf("what-if-data"));
  const place = Object.fromEntries(
    ["starts", "answer", "command", "steps", "path", "curve"].map((name) => [name, root.querySelector(`.${name}`)]));
  const factors = panel.classes.map(() => 1);
  new ResizeObserver(() => { place.width = widthOf(root); }).observe(root); // asked once per drawing, it costs a layout
  place.width = widthOf(root);
  const recorded = await panel.firstOf(0);
  const state = { factors, start: 0, touched: 0, recorded, before: pathTimes(panel, recorded, factors), curve: null };
  let waiting = false;
  const draw = async () => {
    if (waiting) return;
    waiting = true;
    await new Promise(requestAnimationFrame);
    let job = null;
    for (let start = -1; start !== state.start; ) { // another one may be chosen while a job is unpacked
      start = state.start;
      job = await panel.jobOf(start);
    }
    waiting = false;
    showAnswer(place, panel, job, state);
  };
  const moves = [];
  root.querySelectorAll("[data-class]").forEach((row) => {
    const number = Number(row.dataset.class);
    moves[number] = leverOf(row, number, panel.classes[number], (which, factor) => {
      state.factors = state.factors.with(which, factor);
      state.touched = which;
      draw();
    });
  });
  place.starts.replaceChildren(...choicesOf(panel, (number) => {
    state.start = number;
    draw();
  }));
  offerTrials(panel, root, moves);
  showAnswer(place, panel, recorded, state);
  root.dataset.ready = "";
  panel.jobOf(0); // what the first move of a slider needs
}

starts.push(() => document.querySelectorAll(".what-if[data-key]").forEach(startPanel));
