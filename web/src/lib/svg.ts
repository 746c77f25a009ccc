/** Pictures as SVG text: what is saved is drawn anew from the numbers, and the PNG is made from the SVG. */

type Attributes = Record<string, string | number | undefined>;

export const escape = (text: string): string =>
  text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, '');

export function el(name: string, attributes: Attributes = {}, ...children: string[]): string {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${escape(String(value))}"`)
    .join('');
  return children.length ? `<${name}${written}>${children.join('')}</${name}>` : `<${name}${written}/>`;
}

export function text(x: number, y: number, content: string, attributes: Attributes = {}): string {
  return el('text', { x, y, ...attributes }, escape(content));
}

/** A whole picture with its title on a ground of its own. */
export function picture(width: number, height: number, title: string, ...children: string[]): string {
  const look = getComputedStyle(document.documentElement);
  return el(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      'font-family': 'system-ui, sans-serif',
      'font-size': 13,
      fill: look.getPropertyValue('--ink').trim(),
    },
    el('title', {}, escape(title)),
    el('rect', { width, height, fill: look.getPropertyValue('--paper').trim() }),
    ...children,
  );
}

export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export function download(name: string, content: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** The SVG as pixels, at twice its size. */
export async function png(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement('canvas');
  const grow = Math.min(2, 8000 / Math.max(image.width, image.height));
  canvas.width = Math.round(image.width * grow);
  canvas.height = Math.round(image.height * grow);
  canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) =>
    canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error('the picture could not be drawn'))), 'image/png'),
  );
}
