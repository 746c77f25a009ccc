/** The page's pictures as SVG. */

import { bytes, number, percent, short } from '../../lib/format';
import { colour, el, picture, text } from '../../lib/svg';
import { visible, type Token } from '../../lib/token';
import type { Shape } from '../../state/moment.svelte';
import { t } from '../../state/preferences.svelte';
import type { CacheSteps, Choice, Tree } from '../../lib/views';
import { BOX, edge, place, way } from './tree';

const clip = (name: string, most: number): string => ([...name].length > most ? `${[...name].slice(0, most - 1).join('')}…` : name);

/** The candidates with their bars, and the die on the line. */
export function choicePicture(choice: Choice, words: Record<string, Token>, tokens: Token[], cached: CacheSteps, n: number): string {
  const [wide, row, top] = [760, 24, 76];
  const before = [...tokens, ...cached.steps.slice(0, n - 1).flatMap((step) => (step.token ? [step.token] : []))].slice(-10);
  const name = (id: number): string => visible(words[String(id)]!);
  const most = Math.max(1e-9, ...choice.candidates.flatMap((one) => [one.own, one.warm, one.chance]));
  const body = [
    text(16, 26, `…${before.map(visible).join('')} → ${name(choice.chosen)}`, { 'font-family': 'monospace', 'font-weight': 600 }),
    ...(['own', 'warm', 'chance'] as const).map((key, i) => text(200 + i * 184, top - 12, t(`generate.${key}`), { 'font-size': 12 })),
    text(184, top - 12, t('generate.logit'), { 'font-size': 12, 'text-anchor': 'end' }),
    ...choice.candidates.flatMap((one, i) => {
      const y = top + i * row;
      const on = one.id === choice.chosen;
      return [
        on ? el('rect', { x: 10, y: y - 2, width: wide - 20, height: row - 2, rx: 4, fill: colour('token-soft') }) : '',
        text(18, y + 14, clip(name(one.id), 14), { 'font-family': 'monospace', fill: colour('token'), 'font-weight': on ? 700 : 400 }),
        text(184, y + 14, number(one.logit), { 'text-anchor': 'end' }),
        ...(['own', 'warm', 'chance'] as const).map((key, c) => {
          if (key === 'chance' && one.cut) return text(200 + c * 184, y + 14, t('generate.cut', { by: one.cut.replace('_', '-') }), { 'font-style': 'italic' });
          return (
            el('rect', { x: 200 + c * 184, y: y + 3, width: Math.max(1, (110 * one[key]) / most).toFixed(1), height: 12, rx: 2, fill: colour(on ? 'token' : key === 'chance' ? 'ink' : 'line-strong') }) +
            text(200 + c * 184 + 168, y + 14, percent(one[key]), { 'text-anchor': 'end' })
          );
        }),
      ];
    }),
  ];
  const base = top + choice.candidates.length * row + 44;
  if (choice.die !== null) {
    const x = (share: number): number => 16 + share * (wide - 32);
    body.push(
      el('rect', { x: 16, y: base, width: wide - 32, height: 28, fill: colour('sunken') }),
      ...choice.line.map(
        ([id, start, end], i) =>
          el('rect', { x: x(start).toFixed(2), y: base, width: Math.max(0.4, (end - start) * (wide - 32)).toFixed(2), height: 28, fill: colour(id === choice.chosen ? 'token' : i % 2 ? 'token-soft-2' : 'token-soft') }) +
          ((end - start) * (wide - 32) > [...name(id)].length * 8 + 6 ? text(x((start + end) / 2), base + 19, name(id), { 'text-anchor': 'middle', 'font-family': 'monospace', fill: colour(id === choice.chosen ? 'paper' : 'token') }) : ''),
      ),
      el('path', { d: `M${x(choice.die) - 6} ${base - 12}h12l-6 10Z`, fill: colour('attention') }),
      el('line', { x1: x(choice.die), x2: x(choice.die), y1: base - 4, y2: base + 32, stroke: colour('attention'), 'stroke-width': 2 }),
      text(Math.min(wide - 40, Math.max(40, x(choice.die))), base - 16, number(choice.die, 4), { 'text-anchor': 'middle', fill: colour('attention'), 'font-weight': 600 }),
    );
  }
  return picture(wide, base + 50, t('generate.title'), ...body);
}

export function cachePicture(cached: CacheSteps, n: number, shape: Shape): string {
  const step = cached.steps[n - 1]!;
  const all = cached.prompt.length + cached.steps.length - 1;
  const cell = Math.min(24, 700 / all);
  const row = Math.max(3, Math.min(11, Math.floor(240 / (2 * shape.layers))));
  const [left, top] = [40, 66];
  const body: string[] = [];
  for (let layer = 0; layer < shape.layers; layer++) {
    const y = top + (shape.layers - 1 - layer) * (2 * row + 3);
    body.push(text(left - 8, y + row + 3, String(layer), { 'text-anchor': 'end', 'font-size': 10 }));
    ['key', 'value'].forEach((kind, which) => {
      const bar = (from: number, to: number, fill: string): string => el('rect', { x: left + from * cell, y: y + which * row, width: (to - from) * cell, height: row - 1, fill: colour(fill) });
      body.push(bar(0, step.reused, `${kind}-soft`), bar(step.reused, step.reused + step.read, kind));
    });
  }
  const foot = top + shape.layers * (2 * row + 3) + 24;
  return picture(
    left + all * cell + 40,
    foot + 24,
    t('generate.cache'),
    text(16, 26, t('generate.cache'), { 'font-weight': 600 }),
    text(16, 46, t('generate.step', { n, all: cached.steps.length }), { 'font-size': 12 }),
    ...body,
    text(left, foot, `${t('generate.with')} ${short(step.multiplications)} · ${t('generate.without')} ${short(step.without)} · ${t('generate.bytes_reused')} ${bytes(step.bytes_reused)}`, { 'font-size': 12 }),
  );
}

export function treePicture(tree: Tree, chosen: number): string {
  const placed = place(tree);
  const lit = new Set(way(tree, chosen));
  const lines = placed.nodes.flatMap((one) =>
    one.parent === null
      ? []
      : [el('path', { d: edge(placed.nodes[one.parent]!, one), fill: 'none', stroke: colour(lit.has(one.id) ? 'accent' : one.kept ? 'ink-3' : 'line-strong'), 'stroke-width': lit.has(one.id) ? 2.6 : 1.2, 'stroke-dasharray': one.kept ? undefined : '2 3' })],
  );
  const boxes = placed.nodes.map((one) =>
    el(
      'g',
      { transform: `translate(${one.x} ${one.y})` },
      el('rect', { width: BOX.wide, height: BOX.high, rx: 7, fill: colour(one.kept ? 'token-soft' : 'paper'), stroke: colour(one.kept ? 'token' : 'line-strong'), 'stroke-dasharray': one.kept ? undefined : '3 2' }),
      text(7, 15, clip(one.token ? visible(one.token) : t('generate.root'), 10), { 'font-family': 'monospace', 'font-size': 12, fill: colour(one.kept ? 'token' : 'ink-3'), 'font-weight': 600 }),
      one.depth ? text(7, 29, number(one.logprob), { 'font-size': 11, fill: colour('ink-2') }) : '',
      one.result === null ? '' : el('circle', { cx: BOX.wide, cy: 0, r: 9, fill: colour('accent') }) + text(BOX.wide, 4, String(one.result + 1), { 'text-anchor': 'middle', 'font-size': 11, fill: colour('accent-ink') }),
    ),
  );
  return picture(placed.width + 20, placed.height + 50, t('generate.tree'), text(16, 26, t('generate.tree'), { 'font-weight': 600 }), el('g', { transform: 'translate(4 40)' }, ...lines, ...boxes));
}
