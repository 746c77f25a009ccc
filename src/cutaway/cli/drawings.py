"""What `cutaway inspect` draws in a terminal: one function a view, from the view's result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from cutaway.cli import screen

if TYPE_CHECKING:
    from cutaway.inspect.attention import Attention, Heads
    from cutaway.inspect.beams import Tree
    from cutaway.inspect.cache import CacheSteps
    from cutaway.inspect.change import Changed
    from cutaway.inspect.circuit import Edges, Paths
    from cutaway.inspect.contexts import Excited
    from cutaway.inspect.factors import Factors, Groups
    from cutaway.inspect.lens import Lens
    from cutaway.inspect.neurons import Neurons
    from cutaway.inspect.numbers import Token
    from cutaway.inspect.path import Direct, Explained
    from cutaway.inspect.picture import Picture
    from cutaway.inspect.roles import Measured, Roles
    from cutaway.inspect.runs import Run
    from cutaway.inspect.saliency import Saliency
    from cutaway.inspect.senses import Senses
    from cutaway.inspect.sweep import Sweep
    from cutaway.inspect.two_texts import Alignment

BLUES = ("#eef3fb", "#cfdef5", "#a9c4ec", "#7ba2dc", "#4f7fc9", "#2b5cab", "#163a78")
SHADES = " ·░▒▓█"
PLAIN = " .:+#@"
LABEL = 14
CELLS = 32


def draw(view: str, run: Run, found: Any) -> None:
    """The view of this name, by the function of its name; one from outside that has none as its JSON."""
    drawing = globals().get(view)
    if drawing is None:
        screen.show(Text(json.dumps(found.to_dict(), ensure_ascii=False, indent=1)))
    else:
        drawing(run, found)


def attention(run: Run, found: Attention) -> None:
    """The table of weights where it fits, and one token's row in numbers."""
    chips(run.tokens)
    title(f"layer {found.layer}, head {found.head}")
    if found.position is None and 2 * len(run) + LABEL <= screen.out().width:
        heat(found.weights, run.tokens)
        screen.show()
    row = -1 if found.position is None else 0
    position = len(run) - 1 if found.position is None else found.position
    weights = found.weights[row][: position + 1]
    best = sorted(range(position + 1), key=lambda key: -weights[key])[:10]
    screen.show(Text.assemble(word(run.tokens[position]), (f" (token {position}) attends to", "dim")))
    lines = [
        screen.Row(f"{word(run.tokens[key])}  {key}  score {found.scores[row][key]:.2f}", float(weights[key]))
        for key in best
    ]
    screen.show(screen.bars(lines, number=False))


def alignment(found: Alignment) -> None:
    """The table of weights where it fits: a row for each token written, a column for each of the source."""
    chips(found.source)
    if 2 * len(found.source) + LABEL <= screen.out().width:
        heat(found.weights, found.target)
    for token, row in zip(found.target, found.weights, strict=True):
        best = sorted(range(len(row)), key=lambda at: -row[at])[:3]
        looked = "  ".join(f"{word(found.source[at])} {row[at]:.0%}" for at in best)
        screen.show(Text.assemble(word(token), ("  looked at  ", "dim"), looked))


def heads(run: Run, found: Heads) -> None:
    """For each measure a table of shades, and the three heads that have most of it."""
    chips(run.tokens)
    measures = {
        "entropy": "how spread, in bits", "distance": "how far back, in tokens",
        "previous": "weight on the token before", "first": "weight on the first token", "itself": "weight on itself",
        "induction": f"weight on what followed this token the last time, from {queries(found.induction_queries)}",
    }  # fmt: skip
    for name, what in measures.items():
        values = getattr(found, name)
        if values is None:
            why = "no token of this text occurs twice" if name == "induction" else "the text is one token"
            screen.show(Text(f"\n{name}: {why}", "dim"))
            continue
        order = sorted(((-float(v), layer, head) for layer, row in enumerate(values) for head, v in enumerate(row)))
        most = ", ".join(f"{found.layers[layer]}.{head} {-value:.2f}" for value, layer, head in order[:3])
        screen.show(Text.assemble("\n", (name, "bold"), (f"  {what} · most in {most}", "dim")))
        heat(values, [f"layer {layer}" for layer in found.layers])


def roles(_: Run, found: Roles) -> None:
    """For each role a table of shades, and the heads that have most of it."""
    made = f"{found.texts} texts of {found.tokens} random tokens, each said twice"
    screen.show(Text(f"{made}: {queries(found.queries)} for each number"))
    measures = {
        "induction": "weight on what followed this token the first time",
        "previous": "weight on the token before", "duplicate": "weight on the same token the first time",
    }  # fmt: skip
    for name, what in measures.items():
        one: Measured = getattr(found, name)
        order = sorted(((-float(v), layer, head) for layer, row in enumerate(one.mean) for head, v in enumerate(row)))
        most = ", ".join(f"{layer}.{head} {-v:.2f} ± {one.margin[layer, head]:.3f}" for v, layer, head in order[:3])
        screen.show(Text.assemble("\n", (name, "bold"), (f"  {what} · most in {most}", "dim")))
        heat(one.mean, [f"layer {layer}" for layer in range(len(one.mean))])


def queries(count: int) -> str:
    return "1 query" if count == 1 else f"{count:,} queries"


def path(run: Run, both: Explained) -> None:
    """The steps with their lengths and turns, then what each part adds to the logit."""
    found, parts = both.path, both.attribution
    chips(run.tokens)
    title(f"the way of {word(run.tokens[found.position])} (token {found.position})")
    longest = max(step.norm for step in found.steps)
    screen.show(Text(f"  {'step':<26}{'length':>8}  {'to before':>9}  {'to last':>7}", "dim"))
    for step in found.steps:
        before = "" if step.to_before is None else f"{step.to_before:.2f}"
        lead = f"  {step.name:<26}{step.norm:>8.2f}  {before:>9}  {step.to_last:>7.2f}  "
        screen.show(Text(lead + screen.bar(step.norm / longest, screen.width() - len(lead))))
    over = f" over {word(parts.against)}" if parts.against else ""
    title(f"what adds to the logit of {word(parts.token)}{over}: {parts.logit:.2f}")
    rows = [("token embedding", parts.embedding), ("position", parts.place), ("final norm's shift", parts.norm_bias)]
    for layer, values in enumerate(parts.heads):
        rows += [(f"layer {layer}, head {head}", float(value)) for head, value in enumerate(values)]
        rows += [(f"layer {layer}, MLP", float(parts.mlp[layer]))]
        rows += [(f"layer {layer}, biases", float(parts.attention_bias[layer] + parts.mlp_bias[layer]))]
    rows.sort(key=lambda row: -abs(row[1]))
    shown, others = rows[:15], sum(value for _, value in rows[15:]) + parts.rest
    most = abs(shown[0][1]) or 1.0
    for label, value in [*shown, (f"the other {len(rows) - len(shown)}", others)]:
        lead = f"  {label:<22}{value:>+8.2f}  "
        style = "dim" if label.startswith("the other") else "red" if value < 0 else ""
        screen.show(Text(lead + screen.bar(abs(value) / most, screen.width() - len(lead)), style))


def lens(run: Run, found: Lens) -> None:
    """Ranks for each token and layer; for the last of the positions what each layer would say."""
    chips(run.tokens)
    room = (screen.out().width - 2 * LABEL - 4) // 6
    layers = list(range(len(found.layers)))[-room:]
    names = ["emb" if i == 0 else str(i - 1) for i in range(len(found.layers))]
    title("the rank of the token that comes (in brackets: would come), after the embedding and after each block")
    screen.show(Text(f"  {'token':<{LABEL}}{'next':<{LABEL}}" + "".join(f"{names[i]:>6}" for i in layers), "dim"))
    for at in range(len(found.positions)):
        comes = word(found.chosen[at]) if found.positions[at] + 1 < len(run) else f"({word(found.chosen[at])})"
        line = Text(f"  {cut(word(run.tokens[found.positions[at]]))}{cut(comes)}")
        for i in layers:
            style = ground(float(found.probability[i, at])) if screen.colourful() else ""
            line.append(f"{found.rank[i, at]:>6,}" if found.rank[i, at] < 100_000 else "  >99k", style)
        screen.show(line)
    for one in found.watch:
        title(f"the rank of {word(one.token)}")
        for at in range(len(found.positions)):
            ranks = "".join(f"{one.rank[i, at]:>6,}" for i in layers)
            screen.show(Text(f"  {cut(word(run.tokens[found.positions[at]]))}{' ' * LABEL}{ranks}"))
    title(f"what each layer would say after {word(run.tokens[found.positions[-1]])}")
    for i, name in enumerate(found.layers):
        words = [
            f"{word(found.words[int(one)])} {100 * chance:.1f}%"
            for one, chance in zip(found.top[i, -1], found.top_probability[i, -1], strict=True)
        ]
        screen.show(Text(f"  {name:<20}{fitting(words, 22)}"))


def saliency(run: Run, found: Saliency) -> None:
    """For each token what caused it: the text in shades, and the strongest in numbers; a minus is against it."""
    if len(found.targets) == 1 or not screen.colourful():
        chips(run.tokens)
    for target, share, signed in zip(found.targets, found.share, found.signed, strict=True):
        gap = "" if found.gap is None else f" · the parts miss the logit by {float(found.gap[0]):.2g}"
        title(f"{word(target.token)} ({100 * target.probability:.1f}%) because of{gap}")
        if len(found.targets) == 1:
            best = sorted(range(len(share)), key=lambda at: -share[at])[:15]
            rows = [
                screen.Row(f"{word(run.tokens[at])}  {at}  {signed[at]:+.2f}", float(share[at]), against(signed[at]))
                for at in best
                if share[at] > 0
            ]
            screen.show(screen.bars(rows, number=False))
        else:
            tinted(run.tokens, share, "{:.0%}", signs=["-" if one < 0 else "" for one in signed])
    sign = "numbers with a sign are gradient x input, in logits:" if len(found.targets) == 1 else "minus:"
    screen.show(Text(f"\n{sign} a negative share counts against the token explained", "dim"))


def against(signed: float) -> str:
    """The style of what speaks against a token."""
    return "red" if signed < 0 else ""


def neurons(run: Run, found: Neurons) -> None:
    """The strongest neurons with the tokens that excite them and the tokens they speak for."""
    chips(run.tokens)
    where = "anywhere" if found.position is None else f"at {word(run.tokens[found.position])} (token {found.position})"
    title(f"the strongest neurons {where}")
    for one in found.neurons:
        says = "  ".join(word(token) for token, _ in one.writes)
        screen.show(
            Text.assemble((f"  {one.layer}.{one.neuron}", "bold"), f"  {one.peak:.2f}", (f"  speaks for {says}", "dim"))
        )
        tinted(run.tokens, one.activations / max(one.peak, 1e-9), scale=one.peak)
    title("how many fire (share of the layer above 0, mean over the tokens)")
    rows = [
        screen.Row(f"layer {layer}", float(row.mean())) for layer, row in zip(found.layers, found.active, strict=True)
    ]
    screen.show(screen.bars(rows, number=False))


def groups(run: Run, found: Groups) -> None:
    chips(run.tokens)
    for group in found.groups:
        some = " ".join(f"{layer}.{neuron}" for layer, neuron in group.examples[:5])
        title(f"{group.size:,} neurons, such as {some}")
        peak = float(max(abs(group.mean.max()), abs(group.mean.min()), 1e-9))
        tinted(run.tokens, group.mean / peak, scale=peak)


def factors(run: Run, found: Factors) -> None:
    chips(run.tokens)
    for number, factor in enumerate(found.factors):
        some = " ".join(f"{layer}.{neuron}" for layer, neuron, _ in factor.neurons[:5])
        title(f"factor {number}: {100 * factor.share:.1f}%, neurons such as {some}")
        tinted(run.tokens, factor.tokens)
    screen.show(Text(f"\nunexplained: {100 * found.unexplained:.1f}% of the activations' sum of squares", "dim"))


def change(run: Run, found: Changed) -> None:
    """The predictions before and after, and where in the text they moved."""
    chips(run.tokens)
    after = f"after {word(run.tokens[found.position])} (token {found.position})"
    for name, candidates in (("before", found.before), ("after", found.after)):
        title(f"{name}: {after}")
        rows = [screen.Row(word(one.token), one.probability) for one in candidates]
        screen.show(screen.bars(rows))
    title("what moved most")
    for one in found.moved[:5]:
        screen.show(Text(f"  {cut(word(one.token), 18)}{screen.percent(one.before)} → {screen.percent(one.after)}"))
    title("how much each prediction moved (KL, nats)")
    peak = float(max(found.kl.max(), 1e-9))
    tinted(run.tokens, found.kl / peak, "{:.3f}", scale=peak)


def sweep(found: Sweep) -> None:
    """How far each cell moves the metric, in shades where that fits, and the strongest in numbers."""
    chips(found.clean_tokens)
    if found.corrupted_tokens:
        chips(found.corrupted_tokens)
    two = found.corrupted is not None
    title(f"{found.metric}: clean {found.clean:.4g}" + (f", corrupted {found.corrupted:.4g}" if two else ""))
    said = {
        "patch": "the corrupted text with one piece of the clean run in its place",
        "resample": "the clean text with one piece of the corrupted run in its place",
        "zero": "the text with one piece made zero",
        "mean": "the text with one piece at its mean over other texts",
    }[found.how]
    by = "" if found.exact else ", estimated from one backward pass"
    screen.show(Text(f"{said}: {found.what}{by}; shades: how far it moves", "dim"))
    shown = found.recovered if two else found.effect
    if 2 * found.values.shape[1] + LABEL <= screen.out().width:
        heat(shown, [f"layer {layer}" for layer in found.layers])
    title(
        "what brings most of the difference back, or takes it further away (below 0)"
        if two
        else "what moves the metric most"
    )
    best, kind = found.strongest(10), found.axes[1]
    places = {(layer, unit): (found.layers.index(layer), found.units.index(unit)) for layer, unit in best}
    most = max(abs(float(shown[at])) for at in places.values()) or 1.0
    words = found.corrupted_tokens or found.clean_tokens
    for (layer, index), at in places.items():
        place = f"{kind} {index}" if kind != "token" else f"{word(words[index])} (token {index})"
        value, back = float(found.values[at]), float(shown[at])
        lead = f"  layer {layer:<3} {cut(place, 24)}{value:>10.4g}{back:>+8.2f}  "
        bar = screen.bar(abs(back) / most, max(0, screen.width() - cell_len(lead)))
        screen.show(Text(lead + bar, "red" if back < 0 else ""))


def edges(run: Run, found: Edges) -> None:
    """The strongest edges."""
    chips(found.clean_tokens)
    chips(found.corrupted_tokens)
    title(f"{found.metric}: clean {found.clean:.4g}, corrupted {found.corrupted:.4g}")
    title("the strongest edges, as estimated: what each would bring back")
    best = found.strongest(15)
    most = max(abs(score) for _, _, score in best) or 1.0
    for sender, receiver, score in best:
        lead = f"  {cut(f'{sender} → {receiver}', 36)}{score:>+10.4g}  "
        bar = screen.bar(abs(score) / most, max(0, screen.width() - cell_len(lead)))
        screen.show(Text(lead + bar, "red" if score < 0 else ""))


def paths(run: Run, found: Paths) -> None:
    """The strongest senders."""
    chips(found.clean_tokens)
    chips(found.corrupted_tokens)
    title(f"{found.metric}: clean {found.clean:.4g}, corrupted {found.corrupted:.4g}")
    title(f"what each path to {', '.join(found.receivers)} brings back")
    best = found.strongest(15)
    most = max(abs(back) for _, back in best) or 1.0
    for sender, back in best:
        lead = f"  {cut(sender, 24)}{back:>+8.2f}  "
        bar = screen.bar(abs(back) / most, max(0, screen.width() - cell_len(lead)))
        screen.show(Text(lead + bar, "red" if back < 0 else ""))


def direct(run: Run, found: Direct) -> None:
    """After each token, what adds most to the next one's logit."""
    title("what adds most to the next token's logit, after each token")
    for at, target in enumerate(found.targets):
        order = abs(found.values[:, at]).argsort()[::-1][:4]
        parts = [f"{found.parts[one]} {found.values[one, at]:+.2f}" for one in order]
        lead = f"  {cut(word(run.tokens[at]), 14)}→ {cut(word(target), 14)}{found.logits[at]:>8.2f}  "
        screen.show(Text(lead + fitting(parts, cell_len(lead))))


def contexts(run: Run, found: Excited) -> None:
    """The strongest contexts of a unit."""
    if found.corpus is None:
        screen.show(Text("Nothing has been recorded for this model yet: cutaway inspect record FILE."))
        return
    title(f"{found.what} {found.layer}.{found.unit} over {found.tokens:,} tokens of {found.corpus}")
    usual = "  ".join(f"{share:.1%} {value:.3g}" for share, value in found.quantiles)
    screen.show(Text(f"quantiles: {usual}", "dim"))
    for one in found.contexts:
        before = "".join(token.text or "?" for token in one.tokens[max(0, one.at - 12) : one.at])
        after = "".join(token.text or "?" for token in one.tokens[one.at + 1 : one.at + 6])
        line = Text.assemble(f"  {one.value:8.3f}  {screen.harmless(before)}")
        line.append(screen.harmless(one.tokens[one.at].text or "?"), "bold reverse")
        line.append(screen.harmless(after))
        screen.show(line)


def cache(_: Run, found: CacheSteps) -> None:
    """A row a step, and the sum."""
    chips(found.prompt)
    screen.show(
        Text(
            f"\n  {'writes':<{LABEL}}{'read':>6}{'reused':>8}{'bytes reused':>14}{'products':>12}{'without':>12}", "dim"
        )
    )
    for step in found.steps:
        name = cut(word(step.token) if step.token else "the end")
        numbers = f"{step.read:>6,}{step.reused:>8,}{step.bytes_reused:>14,}"
        screen.show(Text(f"  {name}{numbers}{short(step.multiplications):>12}{short(step.without):>12}"))
    saved = 1 - found.multiplications / max(1, found.without)
    screen.show(
        Text(
            f"\n  {short(found.multiplications)} multiplications instead of {short(found.without)}: {saved:.0%} saved, "
            f"for {found.per_token_bytes:,} bytes a token"
        )
    )


def beams(_: Run, found: Tree) -> None:
    """The tree of what was kept, the dropped beside it dim, and the texts that were found."""
    chips(found.prompt)
    title(f"the search, keeping {found.beams}")
    children: dict[int | None, list[Any]] = {}
    for node in found.nodes:
        children.setdefault(node.parent, []).append(node)
    stack = [(node, 0) for node in reversed(children.get(0, []))]
    while stack:
        node, depth = stack.pop()
        mark = f"  ← {node.result + 1}" if node.result is not None else ""
        style = "bold green" if mark else "" if node.kept else "dim"
        sign = "" if node.kept else "  dropped"
        ended = f"  ({node.reason})" if node.reason else ""
        lead = "  " + "│ " * depth
        screen.show(Text.assemble((lead, "dim"), (f"{word(node.token)}  {node.logprob:.2f}{ended}{sign}{mark}", style)))
        stack += [(child, depth + 1) for child in reversed(children.get(node.id, []))]
    title("found")
    for number, result in enumerate(found.results, 1):
        screen.show(Text(f"{number:>4}  {result.score:.3f}  {screen.harmless(result.text)!r}"))


def parameters(run: Run, found: Picture) -> None:
    """The picture, as shades of the mean size of the numbers in a cell; a terminal has room for few."""
    from cutaway.inspect.picture import picture

    found = picture(run.lm, found.name, CELLS)
    total = found.total
    shape = " × ".join(f"{side:,}" for side in found.shape)
    screen.show(Text.assemble((found.name, "bold"), f"  {shape}"))
    screen.show(
        Text(
            f"mean {total['mean']:.4g}, spread {total['std']:.4g}, from {total['min']:.4g} to {total['max']:.4g}\n",
            "dim",
        )
    )
    size = (found.spread**2 + found.mean**2) ** 0.5
    heat(size - size.min(), [""] * len(size), cell=1, label=2)
    screen.show(
        Text(f"each cell: the root mean square of its numbers, from {size.min():.2g} to {size.max():.2g}", "dim")
    )


def chips(tokens: Iterable[Token]) -> None:
    screen.show(screen.chips([token.bytes for token in tokens], lines=6))


def title(text: str) -> None:
    screen.show(Text(f"\n{text}", "bold"))


def word(token: Token | None) -> str:
    return screen.visible(token.bytes) if token else ""


def cut(text: str, size: int = LABEL) -> str:
    """A label of exactly so many cells, the last of them empty."""
    return set_cell_size(text if cell_len(text) < size else set_cell_size(text, size - 2) + "…", size)


def short(number: int) -> str:
    """A large number as people say it: 12.3M."""
    for size, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{name}"
    return str(number)


def ground(share: float) -> str:
    """Ink and ground for a cell that is so strong."""
    step = min(len(BLUES) - 1, max(0, round(share * (len(BLUES) - 1))))
    return f"{'#ffffff' if step > 3 else '#10233f'} on {BLUES[step]}"


def heat(matrix: Any, labels: Sequence[Token | str], cell: int = 2, label: int = LABEL) -> None:
    """A matrix in shades, a line a row, each row with its label; the strongest of all is the darkest."""
    most = float(abs(matrix).max()) or 1.0
    signs = SHADES if screen.unicode() else PLAIN
    for name, row in zip(labels, matrix, strict=True):
        line = Text(cut(name if isinstance(name, str) else word(name), label))
        for value in row:
            share = abs(float(value)) / most
            if screen.colourful():
                line.append(" " * cell, ground(share))
            else:
                line.append(signs[min(5, int(share * 5.999))] * cell)
        screen.show(line)


def tinted(
    tokens: Sequence[Token], shares: Any, form: str = "{:.2f}", scale: float = 1.0, signs: Sequence[str] | None = None
) -> None:
    """The tokens in shades, where there is colour; and the strongest in numbers, everywhere, each after its sign."""
    if screen.colourful():
        line, used = Text("    "), 4
        for token, share in zip(tokens, shares, strict=True):
            size = cell_len(word(token))
            if used + size > screen.out().width:
                line.append("\n    ")
                used = 4
            line.append(word(token), ground(float(share)))
            used += size
        screen.show(line)
    best = sorted(range(len(tokens)), key=lambda at: -float(shares[at]))[:6]
    marks = signs or [""] * len(tokens)
    parts = [f"{word(tokens[at])} {marks[at]}{form.format(float(shares[at]) * scale)}" for at in best if shares[at] > 0]
    screen.show(Text(f"    {fitting(parts, 4)}", "dim"))


def fitting(parts: Sequence[str], used: int) -> str:
    """As many of these side by side as fit on the line, but at least one."""
    line = "".join(parts[:1])
    for part in parts[1:]:
        if used + cell_len(line) + 2 + cell_len(part) > screen.out().width:
            break
        line += f"  {part}"
    return line


def senses(_: Run, found: Senses) -> None:
    """How alike the two vectors are in each layer, and the neighbours of both and of the static one."""
    title(f"{found.word}: how alike its two vectors are")
    for number, (name, cosine) in enumerate(zip(found.layers, found.cosines, strict=True)):
        mark = "<- these neighbours" if number == found.layer else ""
        screen.show(Text.assemble(f"{number:>3}  {name:<22} {float(cosine):.3f}  ", (mark, "dim")))
    for which, near in zip(("in the first text", "in the other"), found.neighbours, strict=True):
        title(f"nearest to {found.word} {which}")
        for one in near:
            screen.show(Text.assemble(f"{one.cosine:.3f}  {one.before}", (one.word, "bold"), one.after))
    title(f"nearest to {found.word} without a text ({found.static_name})")
    words = "  ".join(f"{one.word} {one.cosine:.2f}" for one in found.static_neighbours)
    screen.show(Text(words or f"{found.word} is none of its words"))
