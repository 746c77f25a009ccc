/** Random numbers, the same for the same seed as in Python: numpy's PCG64, seeded by its SeedSequence (`cutaway.decoding.rng`). */

const BITS64 = (1n << 64n) - 1n;
const BITS128 = (1n << 128n) - 1n;
const MULTIPLIER = 0x2360ed051fc65da44385df649fccf645n;

export class Random {
  #state: bigint;
  readonly #step: bigint;

  constructor(seed: number[]) {
    const words = spread(mixed(seed.flatMap(wordsOf)), 8).map(BigInt);
    const [one, two, three, four] = [0, 2, 4, 6].map((i) => words[i]! | (words[i + 1]! << 32n)) as [bigint, bigint, bigint, bigint];
    this.#step = ((((three << 64n) | four) << 1n) | 1n) & BITS128;
    this.#state = ((this.#step + ((one << 64n) | two)) * MULTIPLIER + this.#step) & BITS128;
  }

  /** Uniform in [0, 1). */
  random(): number {
    this.#state = (this.#state * MULTIPLIER + this.#step) & BITS128;
    const folded = ((this.#state >> 64n) ^ this.#state) & BITS64;
    const turn = this.#state >> 122n;
    return Number((((folded >> turn) | (folded << (64n - turn))) & BITS64) >> 11n) * 2 ** -53;
  }
}

/** The 32 bits at a time of a number, the lowest first. */
function wordsOf(number: number): number[] {
  const words = [number >>> 0];
  for (let rest = Math.floor(number / 2 ** 32); rest > 0; rest = Math.floor(rest / 2 ** 32)) words.push(rest >>> 0);
  return words;
}

/** Four words that every word given has a part in. */
function mixed(entropy: number[]): number[] {
  let factor = 0x43b0d7e5;
  const hashed = (given: number): number => {
    let word = (given ^ factor) >>> 0;
    factor = Math.imul(factor, 0x931e8875) >>> 0;
    word = Math.imul(word, factor) >>> 0;
    return (word ^ (word >>> 16)) >>> 0;
  };
  const mix = (into: number, word: number): number => {
    const made = (Math.imul(into, 0xca01f9dd) - Math.imul(hashed(word), 0x4973f715)) >>> 0;
    return (made ^ (made >>> 16)) >>> 0;
  };
  let pool = [...entropy, 0, 0, 0, 0].slice(0, 4).map(hashed);
  for (let source = 0; source < 4; source++) {
    for (let into = 0; into < 4; into++) if (source !== into) pool[into] = mix(pool[into]!, pool[source]!);
  }
  for (const word of entropy.slice(4)) pool = pool.map((into) => mix(into, word));
  return pool;
}

/** As many words as are asked for, made of the pool. */
function spread(pool: number[], count: number): number[] {
  let factor = 0x8b51f9dd;
  return Array.from({ length: count }, (_, i) => {
    let word = (pool[i % pool.length]! ^ factor) >>> 0;
    factor = Math.imul(factor, 0x58f38ded) >>> 0;
    word = Math.imul(word, factor) >>> 0;
    return (word ^ (word >>> 16)) >>> 0;
  });
}

/** zlib's checksum of numbers as little-endian int64. */
export function checksum(numbers: readonly number[]): number {
  let crc = 0xffffffff;
  for (const number of numbers) {
    for (let byte = 0; byte < 8; byte++) {
      crc ^= byte < 4 ? (number >>> (8 * byte)) & 255 : 0;
      for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
    }
  }
  return (crc ^ 0xffffffff) >>> 0;
}
