/** Drawings of models that read one text and write another. */

import type { Attentions, HiddenStates, Learned, Level, Sinusoids, Stacks, Token, Translation, Unrolled } from '../lib/views';
import { bars, chips, choose, heat, largest, LONG, make, number, percent, section, table, visible, type Bar, type Cell, type Matrix, type Run } from './parts';

const ATTENTIONS: Record<string, string> = {
  cross: "A row is a token that goes into the decoder, a column the token of the source it looks at.",
  encoder: "A row is a token of the source that looks, a column the token of the source it looks at.",
  decoder: "A row is a token that goes into the decoder, a column the one before it, or itself, that it looks at.",
};
const mean = (matrices: number[][][]): Matrix => matrices[0]!.map((row, i) => row.map((_, j) => matrices.reduce((sum, one) => sum + one[i]![j]!, 0) / matrices.length));
const stand = (level: Level): string => level.layer === null ? level.part : `layer ${level.layer}, ${level.part}`;
/** A token of the source, or of the decoder's rows, which begin with the start token: the last of what a run was given. */
const named = (run: Run, at: number, decoder = false): string => {
  const token: Token | undefined = run.tokens[decoder ? (run.prompt ?? NaN) - 1 + at : at];
  return `${decoder ? "row" : "token"} ${at}${token ? `, ${visible(token)}` : ""}`;
};

export const pairs = {
  translation(root: Element, _: Run, data: Translation) {
    const from = data.given ? ` The first ${data.given} were given.` : "";
    section(root, "The source");
    root.append(chips(data.source));
    section(root, "Its translation", `Tinted by the probability of each token when it was written.${from} ${data.ended ? "It came to its end." : "It was stopped before its end."}`);
    root.append(make("p", data.text), chips(data.target, data.steps.map((step) => step.probability), "token", data.steps.map((step) => percent(step.probability))));
    section(root, "How each token was chosen", "Its probability, and the likeliest that might have stood there. The start token comes first: the first row is chosen by it alone.");
    root.append(table(["", "token", "probability", ...(data.steps[0]?.top ?? []).map((_, i) => `${i + 1}`)], data.steps.map((step, i): Cell[] => [i < data.given ? "given" : "",
      { text: visible(data.target[i]!), word: true }, percent(step.probability),
      ...step.top.map((token, j) => ({ text: `${visible(token)}  ${percent(step.probabilities[j]!)}`, word: true, tint: step.probabilities[j]! }))])));
  },
  attentions(root: Element, _: Run, data: Attentions) {
    const { queries, keys, weights } = data, heads = weights.length, rows = queries.map(visible), columns = keys.map(visible);
    section(root, `${data.of} attention${data.layers > 1 ? `, layer ${data.layer} of 0 to ${data.layers - 1}` : ""}`, `${ATTENTIONS[data.of] ?? ""} A row sums to 1.`);
    const names = [...(heads > 1 ? [[-1, "mean"] as [number, string]] : []), ...weights.map((_, head): [number, string] => [head, `head ${head}`])];
    root.append(choose(names, (head) => heat(head < 0 ? mean(weights) : weights[head]!, (row, column, value) => `${rows[row]} → ${columns[column]}: ${number(value)}`, rows,
      { across: columns, byRow: rows.length > LONG })));
  },
  unrolled(root: Element, _: Run, data: Unrolled) {
    const { source, decoder, states, last, context } = data;
    section(root, `A recurrent network (${data.cell})`, `Attention: ${data.attention}.${data.bidirectional ? " The second half of each of the encoder's vectors was read from the end." : ""}`);
    root.append(chips(source), chips(decoder));
    section(root, "Word by word", "What a layer holds after each token: a row is a token, a column one of its numbers.");
    const rows = (state: HiddenStates): Token[] => state.stack === "encoder" ? source : decoder;
    root.append(choose(states.map((state, i): [number, string] => [i, `${state.stack}, layer ${state.layer}`]), (i) => heat(states[i]!.values, (row, column, value) =>
      `after ${visible(rows(states[i]!)[row]!)}, column ${column}: ${number(value)}`, rows(states[i]!).map(visible))));
    section(root, "What goes over", "The state that each layer of the decoder begins with: a row is a layer.");
    root.append(heat(last, (row, column, value) => `layer ${row}, column ${column}: ${number(value)}`, last.map((_, layer) => `layer ${layer}`)));
    if (!context) return section(root, "No attention", "The decoder knows nothing of the source but what goes over.");
    section(root, "What attention brings", "From the source, for each token that goes into the decoder: the mean of the encoder's vectors by its weights.");
    root.append(heat(context, (row, column, value) => `for ${visible(decoder[row]!)}, column ${column}: ${number(value)}`, decoder.map(visible)));
  },
  stacks(root: Element, run: Run, data: Stacks) {
    section(root, "Up both stacks", `After each part of each block, from the entry on: how long the vector is, and its numbers. ${data.heads} heads; the norm is ${data.norm === "pre" ? "before" : "after"} each part.`);
    const longest = largest(data.levels.map((level) => level.norm));
    for (const [stack, what] of [["encoder", named(run, data.source)], ["decoder", named(run, data.target, true)]] as const) {
      const levels = data.levels.filter((level) => level.stack === stack);
      section(root, `${stack}: ${what}`);
      root.append(bars(levels.map((level): Bar => [stand(level), level.norm]), { most: longest }),
        heat(levels.map((level) => level.values), (row, column, value) => `${stand(levels[row]!)}, column ${column}: ${number(value)}`, levels.map((level) => level.layer === null ? level.part : `${level.layer}, ${level.part}`)));
    }
  },
  learned(root: Element, _: Run, data: Learned) {
    section(root, "What the right words are given", `The mean of −log of their probabilities (nats): ${number(data.loss_before)} with random weights (seed ${data.seed}), ${number(data.loss_after)} after training.`);
    root.append(chips(data.places.map((place) => place.token), data.places.map((place) => place.after), "token", data.places.map((place) => `${percent(place.before)} before, ${percent(place.after)} after`)));
    section(root, "Word by word", "The likeliest after training, and with them the right word (in brackets): their probability after training, and before it.");
    const most = data.places[0]?.words.length ?? 0;
    root.append(table(["right", "before", "after", ...Array.from({ length: most }, (_, i) => `${i + 1}`)], data.places.map((place): Cell[] => [{ text: visible(place.token), word: true },
      percent(place.before), { text: percent(place.after), tint: place.after }, ...place.words.map((token, i) => ({
        text: `${token.id === place.token.id ? `(${visible(token)})` : visible(token)}  ${percent(place.trained[i]!)} ← ${percent(place.untrained[i]!)}`, word: true, tint: place.trained[i]! }))])));
  },
  sinusoids(root: Element, _: Run, data: Sinusoids) {
    const columns = data.values[0]!.length;
    section(root, `Sinusoids, ${data.layout}`, `What is added to the vector at each position: a row is a position, a column one of ${number(columns)} numbers. ${data.layout === "halves"
      ? "All sines come first, then all cosines." : "A sine and the cosine of its frequency stand side by side."} ${data.layout === data.own ? "The model's own layout." : `The model's own layout is ${data.own}.`}`);
    const wave = (column: number): string => (data.layout === "halves" ? column < columns / 2 : column % 2 === 0) ? "sine" : "cosine";
    root.append(heat(data.values, (row, column, value) => `position ${row}, column ${column} (${wave(column)}): ${number(value)}`, data.values.map((_, row) => `position ${row}`)));
  },
};
