/** Tokens as they can be seen. */

export interface Token {
  id: number;
  /** null where the bytes are only part of a character. */
  text: string | null;
  bytes: string;
}

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
