/* Turns the packed data of the page back into bytes. */
"use strict";

const bytesOf = (text) => {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return bytes;
};

/* Bytes of a gzip member, by the browser, or by `inflate` where the browser cannot. */
async function gunzip(bytes) {
  if (typeof DecompressionStream === "function") {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
  return gunzipNow(bytes);
}

const gunzipNow = (bytes) =>
  inflate(bytes.subarray(10), new DataView(bytes.buffer).getUint32(bytes.length - 4, true));

/* RFC 1951. `size` is the length of the result, which the gzip trailer states. */
function inflate(input, size) {
  const output = new Uint8Array(size);
  let at = 0;
  let out = 0;
  let hold = 0;
  let held = 0;
  const bits = (count) => {
    while (held < count) {
      hold |= input[at++] << held;
      held += 8;
    }
    const value = hold & ((1 << count) - 1);
    hold >>>= count;
    held -= count;
    return value;
  };
  const codes = (lengths) => {
    const count = new Uint16Array(16);
    for (const length of lengths) count[length] += 1;
    count[0] = 0;
    const first = new Uint16Array(16);
    for (let i = 1; i < 16; i += 1) first[i] = first[i - 1] + count[i - 1];
    const symbols = new Uint16Array(lengths.length);
    lengths.forEach((length, symbol) => {
      if (length) symbols[first[length]++] = symbol;
    });
    return { count, symbols };
  };
  const next = ({ count, symbols }) => {
    let code = 0;
    let base = 0;
    let index = 0;
    for (let length = 1; length < 16; length += 1) {
      code |= bits(1);
      if (code - count[length] < base) return symbols[index + code - base];
      index += count[length];
      base = (base + count[length]) << 1;
      code <<= 1;
    }
    throw new Error("damaged data");
  };
  const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  const lengthOf = (symbol) => {
    if (symbol === 285) return 258;
    if (symbol < 265) return symbol - 254;
    const extra = (symbol - 261) >> 2;
    return ((4 + ((symbol - 265) & 3)) << extra) + 3 + bits(extra);
  };
  const distanceOf = (symbol) => {
    if (symbol < 4) return symbol + 1;
    const extra = (symbol - 2) >> 1;
    return ((2 + (symbol & 1)) << extra) + 1 + bits(extra);
  };
  const tables = () => {
    const literals = bits(5) + 257;
    const distances = bits(5) + 1;
    const count = bits(4) + 4;
    const short = new Array(19).fill(0);
    for (let i = 0; i < count; i += 1) short[ORDER[i]] = bits(3);
    const meta = codes(short);
    const lengths = [];
    while (lengths.length < literals + distances) {
      const symbol = next(meta);
      if (symbol < 16) lengths.push(symbol);
      else {
        const value = symbol === 16 ? lengths[lengths.length - 1] : 0;
        const times = symbol === 16 ? 3 + bits(2) : symbol === 17 ? 3 + bits(3) : 11 + bits(7);
        for (let i = 0; i < times; i += 1) lengths.push(value);
      }
    }
    return [codes(lengths.slice(0, literals)), codes(lengths.slice(literals))];
  };
  const fixed = () => [
    codes(Array.from({ length: 288 }, (_, i) => (i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8))),
    codes(new Array(30).fill(5)),
  ];
  let last = 0;
  while (!last) {
    last = bits(1);
    const kind = bits(2);
    if (kind === 0) {
      hold = 0;
      held = 0;
      const length = input[at] | (input[at + 1] << 8);
      output.set(input.subarray(at + 4, at + 4 + length), out);
      at += 4 + length;
      out += length;
    } else {
      const [literal, distance] = kind === 1 ? fixed() : tables();
      for (;;) {
        const symbol = next(literal);
        if (symbol === 256) break;
        if (symbol < 256) output[out++] = symbol;
        else {
          const length = lengthOf(symbol);
          const back = distanceOf(next(distance));
          for (let i = 0; i < length; i += 1, out += 1) output[out] = output[out - back];
        }
      }
    }
  }
  return output;
}

const packedElement = (id) => bytesOf(document.getElementById(id).textContent);
const unpackElement = async (id) => gunzip(packedElement(id));
