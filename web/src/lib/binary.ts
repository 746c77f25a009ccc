/** Arrays from the server: little-endian numbers, their shape in a header. */

export interface Table {
  rows: number;
  columns: number;
  values: Float32Array;
}

let halves: Float32Array | null = null;

/** Every float16 there is, as float32: decoding is then a look into a table. */
function halfTable(): Float32Array {
  if (halves) return halves;
  halves = new Float32Array(65536);
  for (let bits = 0; bits < 65536; bits++) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    halves[bits] =
      exponent === 0
        ? sign * fraction * 2 ** -24
        : exponent === 31
          ? fraction
            ? NaN
            : sign * Infinity
          : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  }
  return halves;
}

export function decode(buffer: ArrayBuffer, type: string): Float32Array {
  if (type === 'float32') return new Float32Array(buffer);
  if (type !== 'float16') throw new Error(`numbers of the kind ${type} are not known here`);
  const table = halfTable();
  const bits = new Uint16Array(buffer);
  const values = new Float32Array(bits.length);
  for (let i = 0; i < bits.length; i++) values[i] = table[bits[i]!]!;
  return values;
}

export function table(buffer: ArrayBuffer, type: string, shape: string): Table {
  const [rows = 0, columns = 0] = shape.split(',').map(Number);
  const values = decode(buffer, type);
  if (values.length !== rows * columns) throw new Error('an array arrived incomplete');
  return { rows, columns, values };
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
}
