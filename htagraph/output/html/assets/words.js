// Numbers and names as texts.

const GROUPED = new Intl.NumberFormat("en");
const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

/** Return a time in the unit that suits it, with about four digits. */
export function timeText(ns) {
  const size = Math.abs(ns);
  const [unit, word] = UNITS.find(([each]) => size >= each) ?? UNITS[3];
  const value = ns / unit;
  const digits = unit === 1 ? 0 : size / unit >= 100 ? 1 : size / unit >= 10 ? 2 : 3;
  return `${value.toFixed(digits)} ${word}`;
}

/** Return a time to the nanosecond, in µs. */
export function exactText(ns) {
  const sign = ns < 0 ? "-" : "";
  const whole = Math.floor(Math.abs(ns) / 1000);
  const rest = String(Math.abs(ns) % 1000).padStart(3, "0");
  return `${sign}${GROUPED.format(whole)}.${rest} µs`;
}

/** Return the widest round interval of which some fit into a time, ns. */
export function tickOf(ns, count) {
  const rough = ns / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  return Math.max(1, [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough));
}

/** Return a moment at a tick, with no more digits than the tick has. */
export function tickText(ns, tick) {
  if (ns === 0) return "0";
  const [unit, word] = UNITS.find(([each]) => Math.abs(ns) >= each) ?? UNITS[3];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / tick) - 1e-9));
  return `${(ns / unit).toFixed(Math.min(digits, 9))} ${word}`;
}

/** Return as much of a name as fits into some letters, its middle left out. */
export function fitted(name, room) {
  if (name.length <= room) return name;
  if (room < 4) return name.slice(0, Math.max(room, 0));
  if (room < 14) return `${name.slice(0, room - 1)}…`;
  const head = Math.ceil((room - 1) * 0.6);
  return `${name.slice(0, head)}…${name.slice(name.length - (room - 1 - head))}`;
}

/** Return an element with a text in it, or with other elements. */
export function made(tag, content, className) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const each of [content].flat()) {
    if (each !== undefined && each !== null && each !== "") element.append(each);
  }
  return element;
}
