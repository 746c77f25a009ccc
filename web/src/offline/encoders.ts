/** Drawings of what an encoder says: gaps, sentences, and one word in two texts. */

import type { Gaps, Neighbour, Senses, Sentences } from '../lib/views';
import { add, bars, chips, heat, largest, make, number, percent, section, table, visible, type Bar, type Run } from './parts';

const TEXT = 60; // characters of a text that name it in a table
const PAIRS = 20; // the nearest pairs that are listed
const named = (text: string): string => text.length > TEXT ? `${text.slice(0, TEXT - 1)}…` : text;

const nearest = (found: Neighbour[]): HTMLElement => add(make("div"), ...found.map((one) =>
  add(make("p"), make("span", `${one.cosine.toFixed(3)}  `, "faint"), document.createTextNode(one.before), make("strong", one.word), document.createTextNode(one.after))));

export const encoders = {
  gaps(root: Element, run: Run, data: Gaps) {
    if (!data.gaps.length) return section(root, "No gap", "Nothing of this text is hidden: choose a token to hide, or write [MASK] in the text.");
    const at = new Map(data.gaps.map((gap) => [gap.position, gap]));
    section(root, "The text, its gaps filled", "In each gap stands the likeliest word, tinted by its probability. All gaps were empty at the same time: no guess helps with another.");
    root.append(chips(run.tokens.map((token, i) => at.get(i)?.guesses[0]?.token ?? token), run.tokens.map((_, i) => at.get(i)?.guesses[0]?.probability ?? 0), "weight",
      run.tokens.map((token, i) => at.has(i) ? `${percent(at.get(i)!.guesses[0]!.probability)}; before ${visible(token)}` : `id ${token.id}`)));
    for (const { position, guesses, token, probability, rank } of data.gaps) {
      section(root, `Token ${position}`, token ? `Hidden: ${visible(token)}, which is given ${percent(probability)}, place ${number(rank)} of all.` : "The text itself has [MASK] here.");
      root.append(bars(guesses.map((guess): Bar => [visible(guess.token), guess.probability, guess.token.id === token?.id ? "stood here" : ""]), { show: percent, most: 1 }));
    }
  },
  sentences(root: Element, _: Run, data: Sentences) {
    const { texts, tokens, cosines } = data;
    section(root, texts.length === 1 ? "One text" : `${texts.length} texts`, `The cosine of the vectors (${number(data.width)} numbers each) of every two texts, tinted by it: 1 the same direction, 0 nothing in common, below 0 opposite.`);
    root.append(table(["text", "tokens", ...texts.map((_, i) => `${i}`)], texts.map((text, i) => [{ text: `${i}  ${named(text)}`, word: true, title: text }, tokens[i]!,
      ...cosines[i]!.map((value, j) => ({ text: value.toFixed(3), tint: value, title: `${named(text)} – ${named(texts[j]!)}` }))])));
    const pairs = cosines.flatMap((row, i) => row.slice(0, i).map((value, j): Bar => [`${j} – ${i}`, value, `${named(texts[j]!)} – ${named(texts[i]!)}`]));
    if (!pairs.length) return;
    section(root, "The nearest first", pairs.length > PAIRS ? `${PAIRS} of ${number(pairs.length)} pairs.` : "");
    root.append(add(make("div", undefined, "scroll"), bars(pairs.sort((a, b) => b[1] - a[1]).slice(0, PAIRS), { show: (value) => value.toFixed(3), most: 1 })));
  },
  senses(root: Element, run: Run, data: Senses) {
    const texts = ["first text", "other text"] as const, [first, other] = data.positions, layer = data.layers[data.layer];
    section(root, `${data.word}, in two texts`);
    root.append(chips(run.tokens, run.tokens.map((_, i) => first.includes(i) ? 1 : 0), "weight"), chips(data.tokens, data.tokens.map((_, i) => other.includes(i) ? 1 : 0), "weight"));
    section(root, "How alike its two vectors are", "Their cosine in each layer: 1 is the same direction.");
    root.append(bars(data.layers.map((name, i): Bar => [name, data.cosines[i]!, i === data.layer ? "shown below" : ""]), { most: 1 }));
    section(root, `Its vectors, ${layer}`, `A column is one of their ${number(data.vectors[0]!.length)} numbers.`);
    root.append(heat(data.vectors, (row, column, value) => `${texts[row]}, column ${column}: ${number(value)}`, [...texts]));
    section(root, "Its neighbours", `The words of ${number(data.sentences)} example sentences whose vectors are nearest in ${layer}, and how near (cosine).`);
    root.append(add(make("div", undefined, "columns"), ...data.neighbours.map((found, i) => add(make("div"), make("h2", `in the ${texts[i]}`), nearest(found)))));
    section(root, `Without a text: ${data.static_name}`, data.static.length ? "The one vector that the word always has there, and its nearest words." : `${data.word} is none of its words.`);
    if (!data.static.length) return;
    const most = largest(data.static);
    root.append(heat([data.static], (_, column, value) => `column ${column}: ${number(value)} of at most ${number(most)}`, [data.word]),
      bars(data.static_neighbours.map((one): Bar => [one.word, one.cosine]), { most: 1 }));
  },
};
