/** What the parts of this page share. */

import type { Token } from '../../lib/token';
import type { Piece } from '../../lib/views';

/** Sentences to compare with, until others are written: in the language that these models read. */
export const EXAMPLES = 'A puppy ran after its toy.\nThe dog chased a ball.\nIt rained all day.';

/** Whether a token frames the text, so that nothing can be guessed there. */
export const framed = (token: Token): boolean => token.text === '[CLS]' || token.text === '[SEP]';

/** A piece of the sentence, or a whole one, as a table names its rows. */
export const named = (text: string): Token => ({ id: 0, text, bytes: '' });
export const pieceToken = (piece: Piece): Token => named(piece.text);
