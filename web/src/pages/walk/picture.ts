/** The step as a drawing: its bands with their names, drawn from the numbers. */

import { colour, el, picture as sheet, text } from '../../lib/svg';
import { ids, visible, type Token } from '../../lib/token';
import { t } from '../../state/preferences.svelte';
import { picture } from './paint';
import type { Step, View } from './steps';

const WIDE = 760;
const NAMES: Record<string, string> = {
  query: 'query', keys: 'key', values: 'value', weights: 'weight', stream: 'stream', middle: 'stream', in: 'score', out: 'score',
};

export function stepPicture(step: Step, view: View, token: Token): string {
  const title = `${t(`walk.s_${step.name}`)} · ${visible(token)}`;
  const body = [text(16, 28, title, { 'font-weight': 650, 'font-size': 17 })];
  const said = t(`walk.say_${step.name}`, { token: visible(token) }).replace(/\[\w+\|([^\]]+)\]/g, '$1');
  body.push(text(16, 50, said.length > 110 ? `${said.slice(0, 108)}…` : said, { 'font-size': 12, fill: colour('ink-2') }));
  let top = 78;
  if (!view.parts.length) {
    body.push(text(16, top + 10, `id ${ids(token)} · ${token.bytes}`, { 'font-family': 'monospace' }));
    top += 30;
  }
  for (const part of view.parts) {
    const band = step.bands.find((one) => one.role === part.role);
    const share = /weights$|probabilities$/.test(part.name);
    const high = part.rows.length === 1 ? 30 : Math.min(320, Math.max(2, Math.min(18, 320 / part.rows.length)) * part.rows.length);
    body.push(text(34, top, `${t(`walk.v_${band?.name ?? NAMES[part.role] ?? 'stream'}`)}  ${part.rows.length > 1 ? `${part.rows.length} × ` : ''}${part.columns}`, { 'font-size': 12, 'font-weight': 600 }));
    if (band?.sign) body.push(text(14, top + 24, band.sign, { 'font-size': 18, fill: colour('ink-3') }));
    body.push(el('rect', { x: 34, y: top + 6, width: 3, height: high, fill: colour(band?.kind ?? 'residual') }));
    body.push(el('image', { x: 37, y: top + 6, width: WIDE, height: high, preserveAspectRatio: 'none', href: picture(part.values.flat(), part.rows.length, part.columns, share ? 'share' : 'signed', WIDE, high) }));
    top += high + 36;
  }
  return sheet(WIDE + 60, top, title, ...body);
}
