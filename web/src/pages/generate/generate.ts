/** What the server says of a text being written: `cutaway.inspect.choices`, `.cache` and `.beams`. */

import type { Token } from '../../lib/token';

/** Whether the text written belongs to the one shown: it was asked for a moment ago, and the reader may have gone on. */
export const belongs = (prompt: Token[], tokens: Token[]): boolean =>
  prompt.length === tokens.length && prompt.every((token, i) => token.id === tokens[i]!.id);
