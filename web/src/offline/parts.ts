/** What the drawings of the offline page are made of: chips, bars, tables, pictures of matrices. */

import type { Candidate, Token } from '../lib/views';

/** What a page is of; `prompt`: how many tokens the reader gave, in a run of two texts those up to the start token. */
export interface Run {
  tokens: Token[];
  prompt?: number;
}
export type Matrix = (number | null)[][];
export type Cell = string | number | { text: string; word?: boolean; tint?: number; title?: string };
export type Bar = [label: string, value: number, note?: string];

export const make = <K extends keyof HTMLElementTagNameMap>(tag: K, text?: string | number | null, name?: string): HTMLElementTagNameMap[K] => {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = String(text);
  if (name) node.className = name;
  return node;
};
export const add = <T extends Element>(parent: T, ...children: Node[]): T => (parent.append(...children), parent);
export const visible = (token: Token): string => token.text === null ? `‹${token.bytes}›`
  : token.text.replace(/ /g, "·").replace(/\n/g, "⏎").replace(/\t/g, "⇥").replace(/\r/g, "␍");
export const percent = (share: number | null): string => share === null ? "" : share !== 0 && share < 0.00005 ? "<0.01%" : `${(100 * share).toFixed(2)}%`;
export const number = (value: number | null | undefined): string => value === null || value === undefined ? "" : Number.isInteger(value) ? value.toLocaleString("en")
  : String(+value.toPrecision(4));
export const tint = (hue: string, share: number): string => `color-mix(in srgb, var(--${hue}) ${Math.round(Math.min(1, Math.max(0, share)) * 75)}%, transparent)`;
export const largest = (values: (number | null)[]): number => values.reduce<number>((most, value) => Math.max(most, Math.abs(value ?? 0)), 0) || 1;
export const section = (root: Element, title: string, text = ''): void => {
  if (title) root.append(make("h2", title));
  if (text) root.append(make("p", text, "faint"));
};

/** The text as chips; `shares` (0 to 1) tints them, in the other colour where one is `against`; `notes` is what pointing at one says. */
export const chips = (tokens: Token[], shares?: number[], hue = "token", notes?: string[], against?: boolean[]): HTMLElement => {
  const line = make("div", undefined, "chips");
  tokens.forEach((token, i) => {
    const chip = make("span", visible(token), "chip");
    if (shares) chip.style.background = tint(against?.[i] ? "minus" : hue, shares[i] ?? 0);
    chip.title = `${i}: ${notes ? notes[i] : `id ${token.id}`}`;
    line.append(chip);
    if (token.text && token.text.endsWith("\n")) line.append(make("br"));
  });
  return line;
};

/** Rows of [label, value, note], as bars to the right; negative ones in the other colour. */
export const bars = (rows: Bar[], { show = number, most }: { show?: (value: number) => string; most?: number } = {}): HTMLElement => {
  const table = make("table");
  const longest = most ?? largest(rows.map((row) => row[1]));
  for (const [label, value, note] of rows) {
    const bar = make("span", undefined, "bar");
    bar.style.width = `${(14 * Math.abs(value)) / longest}em`;
    if (value < 0) bar.style.background = "var(--minus)";
    table.append(add(make("tr"), make("td", label, "word"), make("td", show(value)), add(make("td", undefined, "word"), bar),
      make("td", note ?? "", "faint")));
  }
  return table;
};

export const table = (heads: string[], rows: Cell[][]): HTMLElement => {
  const whole = make("table");
  whole.append(add(make("tr"), ...heads.map((head) => make("th", head))));
  for (const row of rows) {
    const line = make("tr");
    for (const cell of row) {
      const { text, word, tint: share, title }: Exclude<Cell, string | number> = typeof cell === "object" ? cell : { text: String(cell) };
      const one = make("td", text, word ? "word" : "");
      if (share !== undefined) one.style.background = tint("weight", share);
      if (title) one.title = title;
      line.append(one);
    }
    whole.append(line);
  }
  return add(make("div", undefined, "scroll"), whole);
};

let ground: Element = document.documentElement; // where the colours stand: above what is drawn, be it a page or a cell of a notebook
export const standOn = (element: Element): void => void (ground = element);
export const colour = (name: string): number[] => {
  const canvas = document.createElement("canvas").getContext("2d")!;
  canvas.fillStyle = getComputedStyle(ground).getPropertyValue(`--${name}`).trim();
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data.slice(0, 3)];
};

/** A matrix as a picture, its rows (and columns) named, of many as many as can be read; pointing at a cell, or going there with the arrow keys,
 *  says its numbers. The strongest of all has the full colour, or `byRow` the strongest of each row. null cells (the mask) stay empty. */
export const heat = (matrix: Matrix, describe: (row: number, column: number, value: number | null) => string, labels?: string[], { across, byRow = false }: { across?: string[]; byRow?: boolean } = {}): HTMLElement => {
  const rows = matrix.length, columns = matrix[0]!.length;
  const values = matrix.flat(), darkest = matrix.map(largest);
  const most = largest(values);
  const [plus, minus] = [colour("plus"), colour("minus")];
  const canvas = make("canvas");
  [canvas.width, canvas.height] = [columns, rows];
  const cell = Math.max(1, Math.min(22, Math.floor(900 / columns)));
  const high = rows <= 64 ? Math.max(14, cell) : cell; // a few rows are high enough for their names, however many columns there are
  [canvas.style.width, canvas.style.height] = [`${columns * cell}px`, `${rows * high}px`];
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `${rows} rows, ${columns} columns; full colour is ${byRow ? "the strongest of its row" : number(most)}. Arrow keys go from cell to cell.`);
  canvas.tabIndex = 0;
  const image = new ImageData(columns, rows);
  values.forEach((value, i) => {
    if (value === null) return;
    const ink = value < 0 ? minus : plus;
    const share = Math.abs(value) / (byRow ? darkest[Math.floor(i / columns)]! : most);
    image.data.set([...ink, Math.round(255 * (byRow ? share ** 0.6 : share))], 4 * i);
  });
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  const note = make("p", " ", "note"), mark = make("span", undefined, "mark"), field = add(make("div", undefined, "field"), canvas, mark);
  note.setAttribute("aria-live", "polite");
  const at: [number, number] = [0, 0];
  const tell = (row: number, column: number): void => {
    [at[0], at[1]] = [Math.max(0, Math.min(rows - 1, row)), Math.max(0, Math.min(columns - 1, column))];
    note.textContent = describe(at[0], at[1], matrix[at[0]]![at[1]]!);
  };
  const frame = (): void => {
    const [wide, high] = [canvas.clientWidth / columns, canvas.clientHeight / rows];
    Object.assign(mark.style, { left: `${at[1] * wide}px`, top: `${at[0] * high}px`, width: `${wide}px`, height: `${high}px` });
  };
  canvas.addEventListener("mousemove", (event) =>
    tell(Math.floor((event.offsetY / canvas.clientHeight) * rows), Math.floor((event.offsetX / canvas.clientWidth) * columns)));
  canvas.addEventListener("focus", () => (tell(...at), frame()));
  canvas.addEventListener("keydown", (event) => {
    const keys: Record<string, [number, number]> = { ArrowUp: [at[0] - 1, at[1]], ArrowDown: [at[0] + 1, at[1]], ArrowLeft: [at[0], at[1] - 1], ArrowRight: [at[0], at[1] + 1],
      Home: [at[0], 0], End: [at[0], columns - 1] };
    const to = keys[event.key];
    if (!to) return;
    event.preventDefault();
    tell(...to);
    frame();
  });
  const scale = make("p", `full colour: ${byRow ? "the strongest of its row" : number(most)}`, "faint");
  if (!labels) return add(make("div"), field, scale, note);
  const named = (list: string[], size: number, place: (line: HTMLElement, at: number) => HTMLElement): HTMLElement[] => {
    const stride = Math.ceil(14 / size);
    return list.flatMap((label, i) => i % stride ? [] : [place(make("div", stride > 1 ? `${i} ${label}` : label), i * size)]);
  };
  const names = add(make("div", undefined, "labels"), ...named(labels, high, (line, at) => {
    line.style.top = `${at + (high - 14) / 2}px`;
    return line;
  }));
  names.style.height = `${rows * high}px`;
  const over = add(make("div", undefined, "over"), ...named(across ?? [], cell, (line, at) => {
    line.style.left = `${at + cell / 2}px`;
    return line;
  }));
  canvas.style.maxWidth = "none";
  return add(make("div"), add(make("div", undefined, "labelled"), names, add(make("div"), ...(across ? [over] : []), field)), scale, note);
};

/** One of several pictures, chosen with buttons. */
export const choose = <T extends string | number>(names: [T, string][], build: (name: T) => HTMLElement): HTMLElement => {
  const whole = make("div"), row = make("p"), place = make("div");
  const pick = (name: T): void => {
    place.replaceChildren(build(name));
    for (const button of row.querySelectorAll('button')) button.setAttribute("aria-pressed", String(button.dataset.name === String(name)));
  };
  for (const [name, label] of names) {
    const button = make("button", label, "chip");
    button.dataset.name = String(name);
    button.addEventListener("click", () => pick(name));
    row.append(button);
  }
  if (names[0]) pick(names[0][0]);
  return add(whole, row, place);
};

export const pixels = (encoded: string, size: number): HTMLCanvasElement => {
  const canvas = make("canvas"), bytes = Uint8Array.from(atob(encoded), (c) => c.charCodeAt(0)), ink = colour("weight");
  [canvas.width, canvas.height] = [size, size];
  const image = new ImageData(size, size);
  bytes.forEach((level, i) => image.data.set([...ink, level], 4 * i));
  canvas.getContext("2d")!.putImageData(image, 0, 0);
  return canvas;
};

export const candidates = (list: Candidate[]): HTMLElement => bars(list.map((one): Bar => [visible(one.token), one.probability, `logit ${number(one.logit)}`]), { show: percent, most: 1 });

export const LONG = 48; // tokens from which a row of weights is tinted by its own strongest: the first row is always a weight of 1
