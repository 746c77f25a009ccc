/** Draws one view of `cutaway inspect` into an element, offline: in a page that is one file, and in a notebook's widget. */

import type { Attention, CacheSteps, Changed, Direct, Edges, Excited, Explained, Factors, Groups, Heads, Lens, Neurons, Paths, Picture, Roles, Saliency, Sweep, Tree } from '../lib/views';
import { encoders } from './encoders';
import { pairs } from './pairs';
import { add, bars, candidates, chips, choose, heat, largest, LONG, make, number, percent, pixels, section, standOn, table, visible, type Bar, type Matrix, type Run } from './parts';

const views = {
  attention(root: Element, run: Run, data: Attention) {
    const words = run.tokens.map(visible);
    section(root, `Layer ${data.layer}, head ${data.head}`, "A row is a token that looks, a column the token it looks at. A row of weights sums to 1.");
    const first = data.position ?? 0;
    const tables = (["weights", "masked", "scores"] as const).flatMap((name): [string, Matrix][] => (data[name] ? [[name, data[name]]] : []));
    const matrix = (of: [string, Matrix][], name: string): Matrix => of.find(([one]) => one === name)![1];
    root.append(choose(tables.map(([name]) => [name, name]), (name) => {
      const shown = matrix(tables, name);
      return heat(shown, (row, column, value) => `${words[first + row]} → ${words[column]}: ${value === null ? "masked" : number(value)}`,
        words.slice(first, first + shown.length), { across: words.slice(0, shown[0]!.length), byRow: name === "weights" && shown.length > LONG });
    }));
    const rows = (["queries", "keys", "values", "output", "merged", "projected"] as const).flatMap((name): [string, Matrix][] => (data[name] ? [[name, data[name]]] : []));
    if (rows.length) section(root, "Vectors", "A row is a token, a column a number of its vector.");
    if (rows.length) root.append(choose(rows.map(([name]) => [name, name]), (name) => heat(matrix(rows, name), (row, column, value) =>
      `${words[(name === "keys" || name === "values" ? 0 : first) + row]}, ${name} ${column}: ${number(value)}`)));
  },
  heads(root: Element, _: Run, data: Heads) {
    const { picture } = data;
    if (picture) {
      section(root, "All heads", "A row is a layer. In a picture a row is a token that looks, a column what it looks at.");
      const grid = make("div", undefined, "grid");
      grid.style.gridTemplateColumns = `repeat(${picture.pixels[0]!.length}, 56px)`;
      picture.pixels.forEach((row, i) => row.forEach((encoded, head) => {
        const canvas = pixels(encoded, picture.size);
        canvas.title = `layer ${data.layers[i]}, head ${head}: entropy ${number(data.entropy[i]![head])} bits, ${number(data.distance[i]![head])} tokens back`;
        grid.append(canvas);
      }));
      root.append(add(make("div", undefined, "scroll"), grid));
    }
    for (const name of ["entropy", "distance", "previous", "first", "itself", "induction"] as const) {
      const measured = data[name];
      if (!measured) continue;
      const most = largest(measured.flat());
      section(root, name, name === "induction" ? `from ${data.induction_queries} ${data.induction_queries === 1 ? "query" : "queries"}` : "");
      root.append(table(["layer", ...measured[0]!.map((_, head) => `head ${head}`)], measured.map((row, i) =>
        [data.layers[i]!, ...row.map((value) => ({ text: number(value), tint: value / most }))])));
    }
  },
  roles(root: Element, _: Run, data: Roles) {
    section(root, "What kind of head each is", `${data.texts} texts of ${data.tokens} random tokens, each said twice: ${number(data.queries)} queries.`);
    for (const [name, what] of [["induction", "The weight on what followed this token the first time."], ["previous", "The weight on the token before."],
      ["duplicate", "The weight on the same token the first time."]] as const) {
      section(root, name, what);
      const { mean, margin } = data[name];
      root.append(table(["layer", ...mean[0]!.map((_, head) => `head ${head}`)], mean.map((row, i) =>
        [i, ...row.map((value, head) => ({ text: number(value), tint: value, title: `± ${number(margin[i]![head])} (95%)` }))])));
    }
  },
  path(root: Element, run: Run, data: Explained) {
    section(root, `The way of ${visible(run.tokens[data.path.position]!)} (token ${data.path.position})`, "The length of its vector after each step, and how it turns.");
    root.append(bars(data.path.steps.map((step): Bar => [step.name, step.norm,
      `to the step before ${number(step.to_before)} · to the last ${number(step.to_last)}`])));
    const parts = data.attribution;
    section(root, `What each part adds to the logit of ${visible(parts.token)}${parts.against ? ` over ${visible(parts.against)}` : ""}: ${number(parts.logit)}`);
    const rows: Bar[] = [["token embedding", parts.embedding], ["position", parts.place], ["final norm's shift", parts.norm_bias], ["rest", parts.rest]];
    parts.heads.forEach((layer, i) => layer.forEach((value, head) => rows.push([`layer ${i}, head ${head}`, value])));
    for (const [name, label] of [["mlp", "MLP"], ["attention_bias", "attention bias"], ["mlp_bias", "MLP bias"]] as const)
      parts[name].forEach((value, i) => rows.push([`layer ${i}, ${label}`, value]));
    root.append(bars(rows.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]))));
  },
  lens(root: Element, run: Run, data: Lens) {
    section(root, "After each layer", "The likeliest next token if the stack ended there, tinted by its probability; the number is the rank of the token that comes, or in brackets would come.");
    const words = (pair: [number, number]): string => visible(data.words[pair[0]]!);
    const cell = (l: number, i: number): [number, number][] => data.top[l]![i]!;
    root.append(table(["token", "next", ...data.layers], data.positions.map((position, i) => [
      { text: visible(run.tokens[position]!), word: true }, { text: position + 1 < run.tokens.length ? visible(data.chosen[i]!) : `(${visible(data.chosen[i]!)})`, word: true },
      ...data.layers.map((layer, l) => ({ text: `${words(cell(l, i)[0]!)}  ${data.rank[l]![i]!.toLocaleString("en")}`, word: true, tint: cell(l, i)[0]![1],
        title: `${layer}: ${cell(l, i).map((pair) => `${words(pair)} ${percent(pair[1])}`).join(", ")}` }))])));
    for (const one of data.watch) {
      section(root, `Watched: ${visible(one.token)}`, "Its rank after each layer.");
      root.append(table(["token", ...data.layers], data.positions.map((position, i) => [{ text: visible(run.tokens[position]!), word: true },
        ...data.layers.map((_, l) => ({ text: number(one.rank[l]![i]), tint: one.probability[l]![i]!, title: percent(one.probability[l]![i]!) }))])));
    }
  },
  saliency(root: Element, run: Run, data: Saliency) {
    section(root, "Which tokens caused it", `Choose a token: those before it are tinted by their share (${data.method}); orange ones, with a minus, speak against it.`);
    root.append(choose(data.targets.map((target, i): [number, string] => [i, visible(target.token)]), (i) => {
      const share = data.share[i]!, signed = data.signed[i]!, most = largest(share), against = signed.map((value) => value < 0);
      const said = (value: number): string => `${value < 0 ? "−" : ""}${percent(Math.abs(value))}`, sum = (at: number): string => `${signed[at]! < 0 ? "−" : "+"}${number(Math.abs(signed[at]!))}`;
      return add(make("div"), chips(run.tokens, share.map((value) => value / most), "token", share.map((value, at) => `${said(against[at] ? -value : value)}, ${sum(at)}`), against),
        bars(share.map((value, at): Bar => [`${visible(run.tokens[at]!)}`, against[at] ? -value : value, `token ${at}, ${sum(at)} logits`]).filter((row) => row[1] !== 0)
          .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 20), { show: said }));
    }));
  },
  neurons(root: Element, run: Run, data: Neurons) {
    section(root, "The strongest neurons", "The text tinted by each neuron's activation, and the next tokens it speaks for.");
    for (const one of data.neurons) {
      root.append(make("h2", `layer ${one.layer}, neuron ${one.neuron}: ${number(one.peak)} at token ${one.at}`),
        make("p", `speaks for ${one.writes.map(([token]) => visible(token)).join("  ")}`, "faint"),
        chips(run.tokens, one.activations.map((value) => value / (one.peak || 1)), "neuron", one.activations.map(number)));
    }
    section(root, "How many fire", "The share of a layer's neurons above 0, by token.");
    root.append(heat(data.active, (row, column, value) => `layer ${data.layers[row]}, ${visible(run.tokens[column]!)}: ${percent(value)}`,
      data.layers.map((layer) => `layer ${layer}`)));
  },
  groups(root: Element, run: Run, data: Groups) {
    section(root, "Neurons that do alike on this text");
    for (const group of data.groups) {
      const most = largest(group.mean);
      root.append(make("h2", `${group.size.toLocaleString("en")} neurons`), make("p", `by layer ${group.by_layer.join(" ")} · for example ${group.examples
        .map(([layer, neuron]) => `${layer}/${neuron}`).join(" ")}`, "faint"), chips(run.tokens, group.mean.map((value) => value / most), "neuron", group.mean.map(number)));
    }
  },
  factors(root: Element, run: Run, data: Factors) {
    section(root, `${data.count} factors`, `Patterns of firing, the strongest first; together they leave ${percent(data.unexplained)} of the activations' sum of squares unexplained.`);
    data.factors.forEach((factor, i) => root.append(make("h2", `factor ${i}: ${percent(factor.share)}`),
      make("p", `neurons ${factor.neurons.map(([layer, neuron]) => `${layer}/${neuron}`).join(" ")}`, "faint"),
      chips(run.tokens, factor.tokens, "neuron", factor.tokens.map(number))));
  },
  change(root: Element, run: Run, data: Changed) {
    section(root, `After token ${data.position}, ${visible(run.tokens[data.position]!)}`, data.changes.map((one) => Object.entries(one)
      .filter(([, value]) => value !== null && value !== "").map(([name, value]) => name === "kind" ? String(value).replace("_", " ") : `${name} ${value}`).join(", ")).join("; "));
    root.append(add(make("div", undefined, "columns"), add(make("div"), make("h2", "before"), candidates(data.before)),
      add(make("div"), make("h2", "after"), candidates(data.after))));
    section(root, "Where the predictions moved", "Tinted by the KL divergence (nats) of the prediction after each token.");
    const most = largest(data.kl);
    root.append(chips(run.tokens, data.kl.map((value) => value / most), "weight", data.kl.map(number)));
    section(root, "Where the stream moved", "A row is a layer, a column a token: the length of the change against the length before.");
    root.append(heat(data.stream, (row, column, value) => `layer ${row}, ${visible(run.tokens[column]!)}: ${percent(value)}`,
      data.stream.map((_, layer) => `layer ${layer}`)));
  },
  sweep(root: Element, _: Run, data: Sweep) {
    const kind = data.axes[1], two = data.corrupted !== null && data.recovered !== null;
    const how = { patch: "the corrupted text with one piece of the clean run in its place", resample: "the clean text with one piece of the corrupted run in its place", zero: "the text with one piece made zero", mean: "the text with one piece at its mean over other texts" }[data.how];
    section(root, data.metric, two
      ? `clean ${number(data.clean)}, corrupted ${number(data.corrupted)}. A cell is ${how} (${data.what}), and shows how much of the difference that brings about: 0 none, 1 all, below 0 the opposite.`
      : `${number(data.clean)} without a change. A cell is ${how} (${data.what}), and shows how far that moves it.`);
    const words = two ? data.corrupted_tokens : data.clean_tokens;
    const differs = data.clean_tokens.map((token, i) => !two || token.id === data.corrupted_tokens[i]!.id ? 0 : 0.5);
    root.append(chips(data.clean_tokens, differs));
    if (two) root.append(chips(data.corrupted_tokens, differs));
    const shown = two ? data.recovered! : data.values.map((row) => row.map((value) => value - data.base));
    const columns = data.units.map((unit) => kind === "token" ? visible(words[unit]!) : `${kind} ${unit}`);
    const note = (at: number): string => kind === "token" ? ` (token ${data.units[at]})` : "";
    root.append(heat(shown, (row, column, value) => `layer ${data.layers[row]}, ${columns[column]}${note(column)}: ${number(data.values[row]![column])}, ${number(value)}${two ? " of the difference" : " from what it was"}`,
      data.layers.map((layer) => `layer ${layer}`), { across: columns }));
    const cells = shown.flatMap((row, at) => row.map((value, column): Bar => [`layer ${data.layers[at]}, ${columns[column]}`, value, `${number(data.values[at]![column])}${note(column)}`]));
    root.append(add(make("div", undefined, "scroll"), bars(cells.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 12))));
  },
  edges(root: Element, _: Run, data: Edges) {
    section(root, data.metric, `clean ${number(data.clean)}, corrupted ${number(data.corrupted)}. What each edge would bring back of the clean run, estimated from one backward pass.`);
    root.append(chips(data.clean_tokens), chips(data.corrupted_tokens));
    const found = data.scores.flatMap((row, s) => row.map((value, r): Bar => [`${data.senders[s]} → ${data.receivers[r]}`, value]));
    root.append(add(make("div", undefined, "scroll"), bars(found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 24))));
  },
  paths(root: Element, _: Run, data: Paths) {
    section(root, data.metric, `clean ${number(data.clean)}, corrupted ${number(data.corrupted)}. The corrupted text, in which ${data.receivers.join(", ")} alone read one part as in the clean run: how much of the difference that brings back.`);
    root.append(chips(data.clean_tokens), chips(data.corrupted_tokens));
    const found = data.senders.map((sender, at): Bar => [sender, data.recovered[at]!, number(data.values[at]!)]);
    root.append(add(make("div", undefined, "scroll"), bars(found.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).slice(0, 24))));
  },
  direct(root: Element, run: Run, data: Direct) {
    section(root, "What adds to each next token's logit", "A row is a part of the model, a column a token of the text; a column adds up to the logit of the token that follows it.");
    root.append(heat(data.values, (row, column, value) => `${data.parts[row]}, after ${visible(run.tokens[column]!)}: ${number(value)} for ${visible(data.targets[column]!)}`,
      data.parts, { across: run.tokens.map(visible) }));
  },
  contexts(root: Element, _: Run, data: Excited) {
    section(root, `${data.what} ${data.layer}.${data.unit}`, data.corpus === null ? "Nothing has been recorded for this model yet: cutaway inspect record FILE."
      : `Its strongest places in ${number(data.tokens)} tokens of ${data.corpus}; ${data.quantiles.map(([share, value]) => `${percent(share)} of the tokens are not above ${number(value)}`).join(", ")}.`);
    for (const one of data.contexts) root.append(make("p", number(one.value), "faint"), chips(one.tokens, one.activations.map((value) => Math.max(0, value / Math.max(1e-9, one.value))), "neuron", one.activations.map(number)));
  },
  cache(root: Element, _: Run, data: CacheSteps) {
    section(root, "What each step computed, and what it found in the cache", `${number(data.per_token_bytes)} bytes a token; `
      + `${number(data.total.multiplications)} multiplications instead of ${number(data.total.without)}.`);
    root.append(chips(data.prompt), table(["step", "writes", "read", "reused", "bytes written", "bytes reused", "multiplications", "without a cache"],
      data.steps.map((step) => [step.step, { text: step.token ? visible(step.token) : "the end", word: true }, ...(["read", "reused", "bytes_written", "bytes_reused",
        "multiplications", "without"] as const).map((name) => number(step[name]))])));
  },
  beams(root: Element, _: Run, data: Tree) {
    section(root, `Keeping ${data.beams}`, "Every text that was looked at. Grey ones were dropped; green ones are what was found.");
    root.append(chips(data.prompt), table(["found", "score", "ended by"], data.results.map((one) =>
      [{ text: one.text.replace(/\n/g, "⏎"), word: true }, number(one.score), one.reason])));
    const items = new Map<number, HTMLElement>(), lists = new Map<number | null, HTMLElement>([[null, make("ul", undefined, "tree")]]);
    for (const node of data.nodes) {
      const item = make("li", node.token ? `${visible(node.token)}  ${number(node.logprob)}${node.reason ? `  (${node.reason})` : ""}` : "the prompt",
        node.result !== null ? "found" : node.kept ? "" : "dropped");
      item.title = `total ${number(node.total)}, score ${number(node.score)}`;
      if (!lists.has(node.parent)) {
        lists.set(node.parent, make("ul", undefined, "tree"));
        items.get(node.parent!)!.append(lists.get(node.parent)!);
      }
      lists.get(node.parent)!.append(item);
      items.set(node.id, item);
    }
    section(root, "The tree");
    root.append(lists.get(null)!);
  },
  parameters(root: Element, _: Run, data: Picture) {
    section(root, data.name, `${data.shape.join(" × ")}: mean ${number(data.total.mean)}, spread ${number(data.total.std)}, from ${number(data.total.min)} to ${number(data.total.max)}`);
    root.append(choose((["mean", "spread", "low", "high"] as const).map((name): [typeof name, string] => [name, name]), (name) =>
      heat(data[name], (row, column, value) => `row ${row}, column ${column} of the picture: ${name} ${number(value)}`)));
  },
  ...encoders,
  ...pairs,
};

/** `draw(element, view, run, data)`: what a page and a widget call. */
export default function draw(element: Element, view: string, run: Run | null, data: unknown): void {
  standOn(element);
  element.replaceChildren();
  if (run?.tokens) element.append(chips(run.tokens));
  const known: Record<string, (root: Element, run: Run, data: never) => void> = views;
  if (known[view]) known[view](element, run ?? { tokens: [] }, data as never);
  else element.append(make('pre', JSON.stringify(data, null, 1))); // a view from outside
}
