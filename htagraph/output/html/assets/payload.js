// Bytes of the page: what Python packed, as typed arrays.

/** Return the bytes of an element of data. */
export function dataOf(id) {
  const letters = atob(document.getElementById(id).textContent);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** Return what was written as JSON. */
export function jsonOf(bytes) {
  return JSON.parse(new TextDecoder().decode(bytes));
}

/** Return bytes that were gzipped. */
export async function unzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Return columns of integers and texts by name; integers are exact up to 2^53. */
export function columnsOf(listed, bytes) {
  const columns = {};
  let at = 0;
  for (const { name, count, planes, signed } of listed) {
    if (planes === 0 && name === "names") {
      columns[name] = jsonOf(bytes.subarray(at, at + count));
      at += count;
      continue;
    }
    columns[name] = integers(bytes, at, count, planes, signed);
    at += count * planes;
  }
  return columns;
}

function integers(bytes, at, count, planes, signed) {
  const values = new Float64Array(count);
  for (let plane = 0, unit = 1; plane < planes; plane++, unit *= 256) {
    const first = at + plane * count;
    for (let i = 0; i < count; i++) values[i] += bytes[first + i] * unit;
  }
  if (signed) for (let i = 0; i < count; i++) values[i] = values[i] % 2 ? -(values[i] + 1) / 2 : values[i] / 2;
  return values;
}

/** Replace each value by the sum of all up to it. */
export function summed(values) {
  for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
  return values;
}
