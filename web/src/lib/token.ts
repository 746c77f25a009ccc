/** Tokens as they can be seen. */

import { count } from './format';
import type { Token as Served } from './views';

/** As the server says it; text is null where the bytes are only part of a character. */
export interface Token extends Served {
  /** The characters that the bytes are parts of, where they are parts and the tokens around are known (see `spell`). */
  of?: string;
}

/** How many bytes a character has that begins with this one; 0 if none does. */
const reach = (byte: number): number => (byte < 0x80 ? 1 : byte >= 0xc2 && byte < 0xe0 ? 2 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte >= 0xf0 && byte < 0xf5 ? 4 : 0);

/** The tokens of a text; those that hold only parts of characters know which. */
export function spell(tokens: Token[]): Token[] {
  if (tokens.every((token) => token.text !== null)) return tokens;
  const cut = tokens.map((token) => token.bytes.split(' ').filter(Boolean).map((byte) => parseInt(byte, 16)));
  const bytes = cut.flat();
  const owner = cut.flatMap((part, at) => part.map(() => at));
  const reader = new TextDecoder('utf-8', { fatal: true });
  const of: string[] = tokens.map(() => '');
  for (let i = 0; i < bytes.length; ) {
    const end = i + Math.max(1, reach(bytes[i]!));
    let sign = '';
    try {
      sign = reader.decode(Uint8Array.from(bytes.slice(i, end)));
    } catch {
      // not a character: its first byte stands alone
    }
    if (sign) for (const at of new Set(owner.slice(i, end))) of[at] += sign;
    i = sign ? end : i + 1;
  }
  return tokens.map((token, at) => (token.text === null && of[at] ? { ...token, of: of[at] } : token));
}

/** A token's id, and beside it GPT-2's. */
export const ids = (token: Token): string => (token.gpt2 === undefined ? count(token.id) : `${count(token.id)} (GPT-2: ${count(token.gpt2)})`);

const SIGNS: Record<string, string> = { ' ': '·', '\n': '⏎', '\t': '⇥', '\r': '␍', '\u00a0': '⍽' };

const signs = (text: string): string =>
  [...text].map((sign) => SIGNS[sign] ?? (/[\p{Cc}\p{Cf}]/u.test(sign) ? `‹U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}›` : sign)).join('');

/** Spaces as ·, line ends as ⏎, half characters as their bytes, after the character they are part of. */
export function visible(token: Token): string {
  if (token.text === null || token.text === '') return token.of ? `‹${signs(token.of)} ${token.bytes}›` : `‹${token.bytes}›`;
  return signs(token.text);
}

/** What a chip shows above and below: the character, and those of its bytes that the token holds. */
export const stacked = (token: Token): { above: string; below: string } | null => (token.text === null && token.of ? { above: signs(token.of), below: token.bytes } : null);

/** Whether this token, after the one before it, begins a new line of the text. */
export const endsLine = (token: Token): boolean => token.text?.endsWith('\n') ?? false;
