/** Tokens as they can be seen. */

import { count } from './format';

export interface Token {
  id: number;
  /** null where the bytes are only part of a character. */
  text: string | null;
  bytes: string;
  /** The id it has in GPT-2's vocabulary, where the model's is a part of that. */
  gpt2?: number;
}

/** A token's id, and beside it GPT-2's. */
export const ids = (token: Token): string => (token.gpt2 === undefined ? count(token.id) : `${count(token.id)} (GPT-2: ${count(token.gpt2)})`);

const SIGNS: Record<string, string> = { ' ': '·', '\n': '⏎', '\t': '⇥', '\r': '␍', '\u00a0': '⍽' };

/** Spaces as ·, line ends as ⏎, half characters as their bytes. */
export function visible(token: Token): string {
  if (token.text === null || token.text === '') return `‹${token.bytes}›`;
  return [...token.text]
    .map((sign) => SIGNS[sign] ?? (/[\p{Cc}\p{Cf}]/u.test(sign) ? `‹U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}›` : sign))
    .join('');
}

/** Whether this token, after the one before it, begins a new line of the text. */
export const endsLine = (token: Token): boolean => token.text?.endsWith('\n') ?? false;
