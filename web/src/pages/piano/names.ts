/** Notes, events and heads by name and by colour. */

import { t } from '../../state/preferences.svelte';
import { piece } from './piece.svelte';

const NAMES = ['C', 'C♯', 'D', 'D♯', 'E', 'F', 'F♯', 'G', 'G♯', 'A', 'A♯', 'B'];
/** 60 is C4. */
export const noteName = (pitch: number): string => `${NAMES[pitch % 12]}${Math.floor(pitch / 12) - 1}`;
export const isBlack = (pitch: number): boolean => [1, 3, 6, 8, 10].includes(pitch % 12);

/** An event in words. */
export function eventName(token: number): string {
  const group = piece.kind(token);
  if (!group) return '';
  const at = token - group.first;
  if (group.kind === 'on' || group.kind === 'off') return t(`piano.event_${group.kind}`, { note: noteName(at) });
  if (group.kind === 'wait') return t('piano.event_wait', { ms: Math.round((at + 1) * 1000 * piece.step) });
  return group.kind === 'velocity' ? t('piano.event_velocity', { n: at + 1, all: group.end - group.first }) : t('piano.event_end');
}

/** The colours of heads, as names of the explorer's inks; what is left over begins again. */
const HEADS = ['query', 'key', 'value', 'attention', 'neuron', 'position', 'token', 'residual'] as const;
export const headInk = (head: number): (typeof HEADS)[number] => HEADS[head % HEADS.length]!;

/** 1:05.3 */
export function clock(seconds: number, digits = 1): string {
  const whole = Math.floor(seconds / 60);
  return `${whole}:${(seconds - 60 * whole).toFixed(digits).padStart(digits ? 3 + digits : 2, '0')}`;
}
