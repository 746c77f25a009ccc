"""The included views, declared: each is a function of a run that asks the file which computes it.

Only this file knows how views are asked; it imports nothing heavy, so that help comes at once.
"""

import math
from typing import TYPE_CHECKING, Annotated, Any

from cutaway.errors import CutawayError
from cutaway.inspect.view import REQUIRED, Word, param, register, view
from cutaway.inspect.views_causal import contexts, direct, edges, paths, sweep
from cutaway.inspect.views_pairs import PAIR_VIEWS

if TYPE_CHECKING:
    from cutaway.inspect.attention import Attention, Heads, Looking
    from cutaway.inspect.beams import Tree
    from cutaway.inspect.cache import CacheSteps
    from cutaway.inspect.change import Changed
    from cutaway.inspect.choices import Writing
    from cutaway.inspect.factors import Factors, Groups
    from cutaway.inspect.gaps import Gaps
    from cutaway.inspect.lens import Lens
    from cutaway.inspect.neurons import Neuron, Neurons
    from cutaway.inspect.next import Next
    from cutaway.inspect.path import Explained
    from cutaway.inspect.picture import Picture
    from cutaway.inspect.roles import Roles
    from cutaway.inspect.runs import Run
    from cutaway.inspect.saliency import Saliency
    from cutaway.inspect.senses import Senses
    from cutaway.inspect.sentences import Sentences
    from cutaway.inspect.values import Values
    from cutaway.language_model import LanguageModel

Changes = list[dict[str, Any]]
"""Changes in their JSON form (`change.from_dict`)."""

LONG = 256
"""Above this many tokens a whole head is told by its scores and weights only."""
WINDOW = 64
"""The lens is shown for so many tokens: for each, every layer scores the whole vocabulary."""
SEEDS = (1 << 32) - 1
BELOW_1 = math.nextafter(1, 0)
SERVED = ("served",)
STREAM = ("residual.0", "blocks.*.residual", "final_norm", "logits")
WEIGHTS = ("blocks.*.attention.weights",)
ATTENTION = tuple(
    f"blocks.*.attention.{name}"
    for name in ("weights", "queries", "keys", "values", "scores", "masked", "heads", "merged", "output")
)
NEURONS = ("blocks.*.mlp.activation",)
WRITES = ("blocks.*.attention.keys", "logits")
ENTRY = ("placed", "residual.0")
"""What an encoder has and no other kind: token and position, before the norm of the entry."""
LAYERS = ("config.layers",)
MLPS = (*LAYERS, "config.mlp_width")
NEURONS_WRITE = (*MLPS, "output_matrix", "final_norm.weight", "blocks.0.mlp.projection.weight")
WRITING = (*LAYERS, "config.heads", "config.width", "read", "score", "token_embedding.weight")
PATH = (
    *NEURONS_WRITE, "config.norm_epsilon", "final_norm.bias", "blocks.0.mlp.projection.bias",
    "blocks.0.attention.projection.bias",
)  # fmt: skip
GRADIENTS = (
    *LAYERS, "read", "output_matrix", "final_norm", "blocks.0.mlp.widen", "blocks.0.mlp.activation",
    "blocks.0.mlp.projection.weight", "blocks.0.mlp_norm", "blocks.0.attention_norm",
    "blocks.0.attention.queries_keys_values", "blocks.0.attention.split", "blocks.0.attention.attend",
    "blocks.0.attention.projection.weight",
)  # fmt: skip
"""What gradients down the stack ask of a block (`backward`)."""

Layer = Annotated[int, param("Which layer, from 0; -1 is the last.", "--layer", "-l")]
Layers = Annotated[list[int] | None, param("Only this layer; repeatable.", "--layer", "-l", high=256)]
HeadNumber = Annotated[int, param("Which head, from 0.", "--head")]
Position = Annotated[int, param("Which token, from 0; -1 is the last.", "--position", "-p")]
At = Annotated[int | None, param("Only this token, from 0; -1 is the last.", "--position", "-p")]
Chosen = Annotated[Word | None, param("The next token to explain, as text or id:N.", "--token", value="TOKEN")]
Against = Annotated[Word | None, param("Explain the difference to this token's logit.", "--against", value="TOKEN")]
Seed = Annotated[int, param("The same seed gives the same result.", "--seed", "-s", low=0, high=SEEDS)]
Temperature = Annotated[float, param("Below 1 surer, above 1 wilder; 0 takes the likeliest.", low=0, high=100)]
TopK = Annotated[int, param("Among so many of the likeliest; 0: among all.", low=0)]
TopP = Annotated[float, param("Among the likeliest that have this probability together.", low=0, high=1)]


@view("What a head attends to", "attention.Attention", reads=ATTENTION, needs=("blocks.0.attention.scale",))
def attention(
    run: "Run",
    layer: Layer = 0,
    head: HeadNumber = 0,
    position: At = None,
    attended: Annotated[int | None, param("The key and value of this token only.", only="served")] = None,
    parts: Annotated[
        str, param("What is told, by name, with commas between.", only="served", served="scores,masked,weights")
    ] = "",
) -> "Attention":
    """What one head attends to: scores, mask, weights, output.

    Example: cutaway inspect attention "A robot must obey" --layer 2 --head 1
    """
    from cutaway.inspect.attention import PARTS
    from cutaway.inspect.attention import attention as look

    usual = PARTS if len(run) <= LONG or position is not None else ("scores", "weights")
    return look(run, layer, head, position, attended, tuple(parts.split(",")) if parts else usual)


@view("All heads at a glance", "attention.Heads", reads=WEIGHTS, needs=LAYERS, remember=True)
def heads(
    run: "Run",
    layer: Layers = None,
    picture: Annotated[int, param("Small pictures, so many cells wide; 0: none.", only="served", low=0, high=64)] = 24,
) -> "Heads":
    """All heads at a glance: entropy, distance, previous token, induction.

    Example: cutaway inspect heads "one two three one two three"
    """
    from cutaway.inspect.attention import heads as look

    return look(run, layer or None, picture)


@view("The head that attends most", "attention.Looking", reads=WEIGHTS, needs=LAYERS, surfaces=SERVED)
def looking(
    run: "Run",
    position: Annotated[int, param("The token that attends.")],
    key: Annotated[int, param("The token attended to.")],
) -> "Looking":
    """The head that attends most from one token to another."""
    from cutaway.inspect.attention import looking as look

    return look(run, position, key)


@view("What kind of head each is", "roles.Roles", reads=WEIGHTS, needs=(*LAYERS, "config.context"), of="model")
def roles(
    run: "Run",
    tokens: Annotated[int, param("How many random tokens, each repeated once.", "--tokens", low=2, high=512)] = 32,
    texts: Annotated[int, param("How many such sequences.", "--texts", low=2, high=64)] = 8,
    seed: Seed = 0,
) -> "Roles":
    """Induction, previous-token, duplicate-token and copying heads, measured on random tokens and names.

    Example: cutaway inspect roles --texts 16
    """
    from cutaway.inspect.roles import roles as look

    return look(run.lm, tokens, texts, seed)


@view(
    "The path of a token", "path.Explained", needs=PATH,
    reads=(
        "token_embedding", "position_embedding", *STREAM, "blocks.*.residual.middle", "blocks.*.attention.heads",
        *NEURONS,
    ),
)  # fmt: skip
def path(
    run: "Run",
    position: Position = -1,
    token: Chosen = None,
    against: Against = None,
) -> "Explained":
    """A token's path through the layers, and what each head and MLP adds to a next token's logit.

    Example: cutaway inspect path "Once upon a" --token " time"
    """
    from cutaway.inspect.path import Explained, attribution
    from cutaway.inspect.path import path as look

    return Explained(look(run, position), attribution(run, position, token, against))


@view("What each layer already knew", "lens.Lens", reads=STREAM, needs=(*LAYERS, "final_norm", "score"))
def lens(
    run: "Run",
    position: At = None,
    k: Annotated[int, param("How many predictions to show for each layer.", "-k", "--count", low=1, high=20)] = 5,
    token: Chosen = None,
    watch: Annotated[
        list[Word] | None, param("Also show the rank of this token; repeatable.", "--watch", value="TOKEN", high=8)
    ] = None,
    first: Annotated[int | None, param("The first of the tokens shown.", only="served", served=0)] = None,
    count: Annotated[int, param("How many tokens are shown.", only="served", low=1, high=WINDOW)] = WINDOW,
) -> "Lens":
    """The logit lens: ranks and predictions after each layer, as if it were the last.

    Example: cutaway inspect lens "Once upon a" --watch " time" --watch " little"
    """
    from cutaway.inspect.lens import lens as look

    start = max(0, len(run) - count) if first is None else run.position(first)
    shown = [position] if position is not None else list(range(start, min(start + count, len(run))))
    return look(run, shown, k, watch or (), token)


def explained_run(lm: "LanguageModel", ids: list[int], given: dict[str, Any]) -> "Run":
    """The text and what comes after it: given, or written by the model."""
    from cutaway.inspect.runs import run, written

    if given["continuation"] and given["write"]:
        raise CutawayError("Give a continuation, or let the model generate one: not both.")
    return written(lm, ids, given["write"]) if given["write"] else run(lm, ids, given["continuation"])


def saliency_passes(run: "Run", given: dict[str, Any]) -> int:
    """How often a method goes through the model: several steps or texts side by side, and once for the two ends."""
    from cutaway.inspect.saliency import AT_ONCE

    texts = {"integrated": given["steps"], "occlusion": len(run)}.get(given["method"], 0)
    return -(-texts // max(1, AT_ONCE // len(run))) + 1


@view(
    "Which tokens caused it", "saliency.Saliency", needs=GRADIENTS, begin=explained_run, passes=saliency_passes,
    reads=(
        "token_embedding", *STREAM, "blocks.*.residual.middle", "blocks.*.attention.keys", "blocks.*.attention.values",
    ),
)  # fmt: skip
def saliency(
    run: "Run",
    continuation: Annotated[
        str, param("Explain each token of this text.", "--continuation", "-c", value="TEXT", only="verb")
    ] = "",
    write: Annotated[int, param("Generate N tokens and explain each.", "--write", "-w", only="verb")] = 0,
    method: Annotated[
        str,
        param("gradient (x input), integrated (gradients), occlusion, rollout or values.", "--method", value="METHOD"),
    ] = "gradient",
    against: Against = None,
    span: Annotated[bool, param("Explain the tokens together, as one.", "--span", value="")] = False,
    steps: Annotated[int, param("Integrated gradients: the number of points.", "--steps", low=1, high=64)] = 16,
    target: Annotated[
        int | None, param("The token to explain; the text's length: the next one.", only="served", served=REQUIRED)
    ] = (None),
) -> "Saliency":
    """Which tokens led to the next one, or to each token of a continuation.

    Example: cutaway inspect saliency "Once upon a time, there was a" --write 5
    """
    from cutaway.inspect.saliency import saliency as look

    return look(run, None if target is None else [target], method, steps, against, span)


@view("Which neurons fire", "neurons.Neurons", reads=NEURONS, needs=NEURONS_WRITE)
def neurons(
    run: "Run",
    layer: Layers = None,
    position: At = None,
    top: Annotated[int, param("How many neurons to show.", "--count", "-k", low=1, high=64)] = 10,
) -> "Neurons":
    """The strongest neurons: which tokens activate them, which next tokens they promote.

    Example: cutaway inspect neurons "The cat sat on the" --layer 3
    """
    from cutaway.inspect.neurons import neurons as look

    return look(run, layer or None, top, position)


@view("One neuron", "neurons.Neuron", reads=NEURONS, needs=NEURONS_WRITE, surfaces=SERVED)
def neuron(run: "Run", layer: Layer, neuron: Annotated[int, param("Which neuron of the layer, from 0.")]) -> "Neuron":
    """One neuron over the whole text."""
    from cutaway.inspect.neurons import neuron as look

    return look(run, layer, neuron)


@view("Neurons that do alike", "factors.Groups", reads=NEURONS, needs=MLPS)
def groups(
    run: "Run",
    count: Annotated[int, param("How many to find.", "--count", "-k", low=1, high=64)] = 8,
    layer: Layers = None,
    seed: Seed = 0,
) -> "Groups":
    """Neurons that behave alike on this text (k-means).

    Example: cutaway inspect groups "The cat sat on the mat." --count 5
    """
    from cutaway.inspect.factors import groups as look

    return look(run, count, layer or None, seed)


@view("What fires together", "factors.Factors", reads=NEURONS, needs=MLPS)
def factors(
    run: "Run",
    count: Annotated[int, param("How many to find.", "--count", "-k", low=2, high=20, served=8)] = 6,
    layer: Layers = None,
    seed: Seed = 0,
    method: Annotated[str, param("nmf (non-negative), or pca (principal components).", "--method", value="METHOD")] = (
        "nmf"
    ),
) -> "Factors":
    """What activates together: activations as 2 to 20 factors, non-negative (NMF) or principal (PCA).

    Example: cutaway inspect factors "The cat sat on the mat. The dog ran." --count 4
    """
    from cutaway.inspect.factors import factors as look

    return look(run, count, layer or None, seed, method)


@view("Before and after", "change.Changed", reads=("blocks.*.residual", "logits"), needs=LAYERS, post=True)
def change(
    run: "Run",
    changes: Annotated[Changes, param("What is changed.", high=64)],
    position: Position = -1,
    k: Annotated[int, param("How many predictions to show.", only="served", low=1, high=40)] = 10,
) -> "Changed":
    """Ablate a head or neuron, steer, push towards a token, or patch from another text: before and after.

    Example: cutaway inspect change "Once upon a" --ablate-head 2.1 --ablate-head 2.3

    Example: cutaway inspect change "The day was" --steer 3 --toward " happy" --away " sad"

    Example: cutaway inspect change "The day was" --push 3 --toward " happy"

    Example: cutaway inspect change "The cat sat" --patch blocks.1.residual --from "The dog sat"
    """
    from cutaway.inspect.change import changed, from_dict
    from cutaway.inspect.runs import run as carry

    return changed(run, carry(run.lm, run.ids, changes=[from_dict(one) for one in changes]), position, k)


@view("What the cache saves", "cache.CacheSteps", reads=WRITES, needs=WRITING, of="text")
def cache(
    run: "Run",
    max_tokens: Annotated[int, param("How many tokens to generate.", "--max-tokens", "-n", low=1, high=100)] = 10,
) -> "CacheSteps":
    """What each generation step computes, what it reuses from the cache, and the cost without it.

    Example: cutaway inspect cache "Once upon a time" --max-tokens 8
    """
    from cutaway.inspect.cache import cache as look

    return look(run.lm, list(run.ids), max_tokens, top_k=1)


@view(
    "How each token was chosen", "choices.Writing", reads=WRITES, needs=WRITING, surfaces=SERVED,
    passes=lambda run, given: given["max_tokens"],
)  # fmt: skip
def writing(
    run: "Run",
    temperature: Temperature = 1.0,
    top_k: TopK = 40,
    top_p: TopP = 1.0,
    seed: Seed = 1,
    max_tokens: Annotated[int, param("How many tokens to generate.", low=1, high=100)] = 20,
    k: Annotated[int, param("How many candidates to show.", low=1, high=40)] = 10,
) -> "Writing":
    """One text, written once: how each token was chosen, and what the cache spared."""
    from cutaway.inspect.choices import Writing, choices_and_cache

    settings = {"temperature": temperature, "top_k": top_k or None, "top_p": top_p, "seed": seed}
    return Writing(*choices_and_cache(run.lm, list(run.ids), max_tokens, k, run, **settings))


@view("The search tree", "beams.Tree", reads=WRITES, needs=WRITING, of="text")
def beams(
    run: "Run",
    beams: Annotated[int, param("The number of beams.", "--beams", "-b", low=1, high=8, served=4)] = 3,
    max_tokens: Annotated[
        int, param("How many tokens to generate.", "--max-tokens", "-n", low=1, high=40, served=12)
    ] = 6,
    length_penalty: Annotated[float, param("Higher favours longer texts.", "--length-penalty", low=-5, high=5)] = 1.0,
) -> "Tree":
    """The whole search tree of a beam search.

    Example: cutaway inspect beams "Once upon a" --beams 3 --max-tokens 4
    """
    from cutaway.inspect.beams import tree

    return tree(run.lm, list(run.ids), beams, max_tokens, length_penalty=length_penalty)


@view("A matrix of weights", "picture.Picture", of="weights")
def parameters(
    run: "Run",
    name: Annotated[str, param("A matrix, as `cutaway parameters` lists them.", value="NAME", argument=True, high=200)],
    size: Annotated[int, param("At most N x N cells.", "--size", low=1, high=128)] = 64,
) -> "Picture":
    """A weight matrix as a heat map.

    Example: cutaway inspect parameters blocks.0.mlp.widen.weight
    """
    from cutaway.inspect.picture import picture

    return picture(run.lm, name, size)


@view("What may come next", "next.Next", reads=("logits",), surfaces=SERVED)
def predict(
    run: "Run",
    position: Position = -1,
    temperature: Annotated[float, param("Below 1 surer, above 1 wilder; 0 takes the likeliest.")] = 1.0,
    top_k: TopK = 0,
    top_p: Annotated[float, param("Among the likeliest that have this probability together.")] = 1.0,
    dice: Annotated[float | None, param("Draw a token with this number, from 0 to below 1.", low=0, high=BELOW_1)] = (
        None
    ),
) -> "Next":
    """The likeliest next tokens, before and after the settings are applied."""
    from cutaway.decoding.sampling import Sampling
    from cutaway.inspect.next import predict as look

    return look(run, position, Sampling(temperature=temperature, top_k=top_k or None, top_p=top_p), dice)


@view("Any value", "values.Values", surfaces=SERVED)
def values(
    run: "Run",
    name: Annotated[str, param("The name of an intermediate, like blocks.3.attention.output.", high=200)],
    position: At = None,
    head: Annotated[int | None, param("Only this head, from 0.")] = None,
) -> "Values":
    """A piece of any named intermediate."""
    from cutaway.inspect.values import values as look

    return look(run, name, position, head)


@view(
    "What stands in the gaps", "gaps.Gaps", reads=("transform.hidden", "logits"), needs=("output",), post=True,
)  # fmt: skip
def gaps(
    run: "Run",
    hide: Annotated[list[int] | None, param("Hide this token, from 0 ([CLS]); repeatable.", "--hide", high=512)] = None,
    k: Annotated[int, param("How many words for each gap.", "-k", "--count", low=1, high=100)] = 5,
) -> "Gaps":
    """An encoder's guesses for every hidden token, and for every [MASK] of the text.

    Example: cutaway inspect gaps "The robot must obey the orders." --hide 2 --hide 4 --model my-bert
    """
    from cutaway.inspect.gaps import gaps as look

    return look(run, hide or (), k)


@view("How near sentences are", "sentences.Sentences", reads=ENTRY, needs=("read",), post=True)
def sentences(
    run: "Run",
    texts: Annotated[list[str] | None, param("Another sentence; repeatable.", "--with", value="TEXT", high=64)] = None,
) -> "Sentences":
    """The cosine of the vectors of every two sentences, by an encoder.

    Example: cutaway inspect sentences "A robot must obey." --with "Machines follow orders." --model my-bert
    """
    from cutaway.inspect.sentences import sentences as look

    return look(run, texts or ())


@view(
    "A word in two texts", "senses.Senses", reads=("residual.0", "blocks.*.residual"), remember=True,
)  # fmt: skip
def senses(
    run: "Run",
    other: Annotated[str, param("The other text.", "--other", value="TEXT", high=4_000)],
    word: Annotated[str, param("The word; else the longest that both have.", "--word", value="WORD", high=80)] = "",
    layer: Annotated[
        int | None, param("0 is before the blocks, then after each, -1 the last; else a good one.", "--layer", "-l")
    ] = None,
    k: Annotated[int, param("So many neighbours.", "-k", "--count", low=1, high=20)] = 6,
) -> "Senses":
    """One word in two texts: its vectors in each layer, their neighbours, and the one vector it has without a text.

    Example: cutaway inspect senses "We stick to the plan." --other "He found a stick in the wood." --word stick
    """
    from cutaway.inspect.senses import senses as look

    return look(run, other, word, layer, k)


register(
    attention, heads, roles, path, lens, saliency, neurons, groups, factors, change, cache, beams, parameters, looking,
    neuron, writing, predict, values, sweep, edges, paths, direct, contexts, gaps, sentences, senses, *PAIR_VIEWS,
)  # fmt: skip
