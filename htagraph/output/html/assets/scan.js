// One row of slices as one line of pixels. Slices narrower than a pixel are skipped, by an index and by galloping.

const SLICES = 16; // of a row for each place of its index: the index is small enough to stay near the processor

/**
 * Fill a line of pixels with the slices of a row between two moments.
 * look.color(i) is a slice's color, look.seam that between slices; look.wide(i) is called for those of look.least pixels.
 */
export function scanRow(line, model, row, view, look) {
  const { color, seam, least } = look;
  const { start, end } = model;
  const { from, scale } = view; // ns, pixels per ns
  const width = line.length;
  let i = gallop(end, row, row.first, from);
  if (i > row.first && end[i - 1] === from && start[i - 1] === from) i--;
  while (i < row.last) {
    const left = Math.floor((start[i] - from) * scale);
    if (left >= width) return;
    const right = Math.floor((end[i] - from) * scale);
    const low = left < 0 ? 0 : left;
    if (right <= low) {
      line[low] = color(i);
      i = gallop(end, row, i + 1, from + (low + 1) / scale);
    } else {
      line.fill(color(i), low, right > width ? width : right);
      if (right - left >= 4 && left >= 0) line[left] = seam; // a seam between neighbors
      if (right - left >= least) look.wide(i);
      i++;
    }
  }
}

/** Return the first slice of a row at or after `i` that ends after a moment, in steps that double from where to look. */
export function gallop(end, row, i, moment) {
  const { from, width, table } = (row.index ??= indexOf(end, row));
  let place = Math.min(Math.floor((moment - from) / width), table.length - 1);
  if (place > 0 && from + place * width > moment) place--; // a quotient may be rounded up
  let low = place >= 0 && table[place] > i ? table[place] : i;
  const { last } = row;
  let step = 1;
  while (low + step < last && end[low + step] <= moment) step *= 2;
  let high = low + step < last ? low + step : last;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end[middle] <= moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Return where to look for moments in a row, made once: the first slice that ends after each of many equal times. */
function indexOf(end, { first, last }) {
  const count = Math.ceil((last - first) / SLICES);
  const from = first < last ? end[first] : 0;
  const width = Math.max(1, (end[last - 1] - from) / count) || 1;
  const table = new Int32Array(count);
  for (let place = 0, i = first; place < count; place++) {
    while (i < last && end[i] <= from + place * width) i++;
    table[place] = i;
  }
  return { from, width, table };
}
