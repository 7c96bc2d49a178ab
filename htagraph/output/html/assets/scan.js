// One row of slices as one line of pixels. Slices narrower than a pixel are skipped by galloping.
import { firstAfter } from "./model.js";

/**
 * Fill a line of pixels with the slices of a row between two moments.
 * look.color(i) is a slice's color, look.seam that between slices; look.wide(i) is called for those of look.least pixels.
 */
export function scanRow(line, model, row, view, look) {
  const { color, seam, least } = look;
  const { start, end } = model;
  const { from, scale } = view; // ns, pixels per ns
  const width = line.length;
  let i = firstAfter(end, from, row.first, row.last);
  if (i > row.first && end[i - 1] === from && start[i - 1] === from) i--;
  while (i < row.last) {
    const left = Math.floor((start[i] - from) * scale);
    if (left >= width) return;
    const right = Math.floor((end[i] - from) * scale);
    const low = left < 0 ? 0 : left;
    if (right <= low) {
      line[low] = color(i);
      i = gallop(end, i + 1, row.last, from + (low + 1) / scale);
    } else {
      line.fill(color(i), low, right > width ? width : right);
      if (right - left >= 4 && left >= 0) line[left] = seam; // a seam between neighbors
      if (right - left >= least) look.wide(i);
      i++;
    }
  }
}

/** Return the first slice at or after `i` that ends after a moment, in steps that double. */
export function gallop(end, i, last, moment) {
  let step = 1;
  while (i + step < last && end[i + step] <= moment) step *= 2;
  let high = i + step < last ? i + step : last;
  while (i < high) {
    const middle = (i + high) >> 1;
    if (end[middle] <= moment) i = middle + 1;
    else high = middle;
  }
  return i;
}
