"""The views that ask why, declared: sweeps, edges, paths, what adds directly, and what excites a unit over a corpus.

They are views like those in views.py, which registers them.
"""

from typing import TYPE_CHECKING, Annotated, Any

from cutaway.errors import CutawayError
from cutaway.inspect.view import Word, param, view

if TYPE_CHECKING:
    from cutaway.inspect.circuit import Edges, Paths
    from cutaway.inspect.contexts import Excited
    from cutaway.inspect.path import Direct
    from cutaway.inspect.runs import Run
    from cutaway.inspect.sweep import Sweep

LONGEST = 100_000
"""Characters a text may have that a server is asked with."""
METRICS = ("probability", "loss", "rank", "kl")
STREAM = ("residual.0", "blocks.*.residual", "final_norm")
BLOCKS = (
    "config.layers", "config.heads", "config.head_width", "read", "score", "token_embedding.weight", "final_norm",
    "blocks.0.attention.projection", "blocks.0.mlp", "blocks.0.mlp_norm",
)  # fmt: skip

Corrupted = Annotated[
    str, param("As many tokens, with another answer.", value="CORRUPTED", argument=True, high=LONGEST)
]
For = Annotated[Word, param("The answer to the clean text, as text or id:N.", "--for", value="TOKEN")]
Against = Annotated[Word | None, param("Measure the lead over this token.", "--against", value="TOKEN")]
Position = Annotated[int, param("Which token is measured at, from 0; -1 is the last.", "--position", "-p")]


def metric_of(token: "int | str | None", against: "int | str | None" = None, position: int = -1, name: str = "") -> Any:
    """The metric that a name and its tokens stand for: without a name the lead, or the probability, or the KL."""
    from cutaway.inspect.metric import KL, LogitDifference, Loss, Probability, Rank

    if name and name not in METRICS:
        raise CutawayError(f"There is no metric {name!r:.40}. Known: {', '.join(METRICS)}.")
    if name == "kl" or (token is None and not name):
        return KL(position=position)
    if token is None:
        raise CutawayError(f"The metric {name} is about one token: name it.")
    if against is not None:
        if name:
            raise CutawayError(f"The lead over another token is a metric by itself: leave {name!r} out.")
        return LogitDifference(token, against, position=position)
    return {"loss": Loss, "rank": Rank}.get(name, Probability)(token, position=position)


@view(
    "Where the answer lies", "sweep.Sweep", surfaces=("served",), needs=BLOCKS, remember=True,
    reads=(*STREAM, "blocks.*.attention.keys", "blocks.*.attention.values"),
)  # fmt: skip
def sweep(
    run: "Run",
    corrupted: Annotated[str, param("As many tokens, with another answer; for zero, none.", high=LONGEST)] = "",
    what: Annotated[str, param("residual, attention, mlp, head, attention pattern or neuron.", high=40)] = "residual",
    how: Annotated[str, param("patch, resample or zero.", high=40)] = "patch",
    token: Annotated[Word | None, param("The answer; without one the whole prediction is measured (KL).")] = None,
    against: Against = None,
    metric: Annotated[str, param("probability, loss, rank or kl, where it is no lead.", high=40)] = "",
    position: Position = -1,
    layer: Annotated[list[int] | None, param("Only this layer; repeatable.", high=256)] = None,
    unit: Annotated[list[int] | None, param("Only this token, head or neuron; repeatable.", high=512)] = None,
    estimate: Annotated[bool, param("Estimate all cells from one backward pass.")] = False,
) -> "Sweep":
    """One piece of a run replaced after another, and the metric of each."""
    from cutaway.inspect.sweep import sweep as look

    other = run.lm.tokenizer.encode(corrupted) if corrupted else None
    measured = metric_of(token, against, position, metric)
    if how == "mean":
        raise CutawayError("Means are taken over other texts, which a server is not given: use Python's lm.sweep.")
    return look(
        run.lm, run.ids, other, what, metric=measured, how=how, layers=layer or None, units=unit or None,
        exact=not estimate,
    )  # fmt: skip


@view("Which part feeds which", "circuit.Edges", reads=STREAM, needs=BLOCKS, of="text")
def edges(
    run: "Run",
    corrupted: Corrupted,
    token: For,
    against: Against = None,
    position: Position = -1,
) -> "Edges":
    """Every edge between two parts, estimated from one backward pass: what it brings back of the clean run.

    Example: cutaway inspect edges "She had a ball. She saw the" "She had a hat. She saw the" --for " ball"
    """
    from cutaway.inspect.circuit import edges as look

    other = run.lm.tokenizer.encode(corrupted)
    return look(run.lm, run.ids, other, metric=metric_of(token, against, position))


@view("Along one path", "circuit.Paths", reads=STREAM, needs=BLOCKS, of="text")
def paths(
    run: "Run",
    corrupted: Corrupted,
    token: For,
    to: Annotated[
        list[str] | None,
        param(
            'A receiver, such as "head 1.0 queries", "mlp 2" or "output"; repeatable.', "--to", value="PART", high=64
        ),
    ] = None,
    against: Against = None,
    position: Position = -1,
) -> "Paths":
    """Path patching: the receivers alone read one sender as in the clean run, for every sender.

    Example: cutaway inspect paths "She had a ball. She saw the" "She had a hat. She saw the" --for " ball" --to output
    """
    from cutaway.inspect.circuit import paths as look

    other = run.lm.tokenizer.encode(corrupted)
    return look(run.lm, run.ids, other, to or ["output"], metric=metric_of(token, against, position))


@view(
    "What adds to each next token", "path.Direct",
    needs=(*BLOCKS, "output_matrix", "config.norm_epsilon", "blocks.0.mlp.projection.bias"),
    reads=("token_embedding", "position_embedding", *STREAM, "blocks.*.attention.heads", "blocks.*.mlp.activation"),
)  # fmt: skip
def direct(
    run: "Run",
    token: Annotated[
        Word | None, param("At every position this token, not the one that follows.", "--token", value="TOKEN")
    ] = None,
    against: Against = None,
) -> "Direct":
    """What each head, MLP and bias adds directly to the logit of the next token, at every position.

    Example: cutaway inspect direct "Once upon a time" --json
    """
    from cutaway.inspect.path import direct as look

    return look(run, token, against)


@view(
    "What excites it", "contexts.Excited", of="model", needs=("config.layers", "config.mlp_width", "config.heads"),
    reads=("blocks.*.mlp.activation", "blocks.*.attention.heads"), remember=True,
)  # fmt: skip
def contexts(
    run: "Run",
    layer: Annotated[int, param("Which layer, from 0; -1 is the last.", "--layer", "-l")] = 0,
    unit: Annotated[int, param("Which neuron or head, from 0.", "--unit", "-u")] = 0,
    what: Annotated[str, param("neuron or head.", "--what", value="WHAT", high=40)] = "neuron",
    file: Annotated[
        str, param("The record, if it is not where it is looked for.", "--file", value="FILE", only="verb")
    ] = "",
) -> "Excited":
    """Where in a recorded corpus one neuron or head is strongest (record one with `inspect record`).

    Example: cutaway inspect contexts --layer 2 --unit 100
    """
    from cutaway.inspect.contexts import contexts as look

    return look(run, layer, unit, what, file or None)
