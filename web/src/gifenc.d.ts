/** What is used of gifenc, which brings no types. */
declare module 'gifenc' {
  type Format = 'rgb565' | 'rgb444' | 'rgba4444';
  export function GIFEncoder(): { writeFrame(index: Uint8Array, width: number, height: number, options: { palette?: number[][]; delay?: number }): void; finish(): void; bytes(): Uint8Array };
  export function quantize(pixels: Uint8Array | Uint8ClampedArray, colours: number, options?: { format?: Format }): number[][];
  export function applyPalette(pixels: Uint8Array | Uint8ClampedArray, palette: number[][], format?: Format): Uint8Array;
}
