"""The views of models that read one text and write another, declared; views.py registers them."""

from typing import TYPE_CHECKING, Annotated

from cutaway.inspect.view import REQUIRED, param, view

if TYPE_CHECKING:
    from cutaway.inspect.pairs import Attentions, Learned, Sinusoids, Stacks, Translation, Unrolled
    from cutaway.inspect.runs import Run

LONGEST = 10_000
"""Characters of a reference that a server is asked with."""

Layer = Annotated[int, param("Which layer, from 0; -1 is the last.", "--layer", "-l")]


@view("A translation, step by step", "pairs.Translation", of="pair", remember=True)
def translation(
    run: "Run",
    beams: Annotated[int, param("The number of beams; 1 is greedy.", "--beams", "-b", low=1, high=8)] = 1,
    k: Annotated[int, param("How many candidates to show for each token.", "-k", "--count", low=1, high=20)] = 5,
    max_tokens: Annotated[
        int, param("How many tokens to write at most.", "--max-tokens", "-n", low=1, high=512, served=100)
    ] = 100,
) -> "Translation":
    """How a translation is written: each token, its probability, and what else might have stood there.

    Example: cutaway inspect translation "The fox runs." --model my-translator

    Example: cutaway inspect translation "The fox runs." --target "Le" --model my-translator
    """
    from cutaway.inspect.pairs import translation as look

    return look(run, beams, k, max_tokens)


@view("What each token attends to", "pairs.Attentions", of="pair", reads=("decoder.*weights",))
def attentions(
    run: "Run",
    of: Annotated[str, param("cross, encoder or decoder.", "--of", value="NAME", high=40)] = "cross",
    layer: Layer = -1,
) -> "Attentions":
    """One of the three attentions, in all heads of a layer; a recurrent model has the one to the source.

    Example: cutaway inspect attentions "The fox runs." --target "Le renard court." --model my-translator
    """
    from cutaway.inspect.pairs import attentions as look

    return look(run, of, layer)


@view("The network, unrolled", "pairs.Unrolled", of="pair", reads=("encoder.blocks.*.last", "decoder.blocks.*.hidden"))
def unrolled(run: "Run") -> "Unrolled":
    """A recurrent network word by word: hidden states, what goes over to the decoder, contexts.

    Example: cutaway inspect unrolled "The fox runs." --target "Le renard" --model my-translator
    """
    from cutaway.inspect.pairs import unrolled as look

    return look(run)


@view("Up both stacks", "pairs.Stacks", of="pair", reads=("encoder.entry", "decoder.blocks.*.cross.sum"))
def stacks(
    run: "Run",
    word: Annotated[int, param("Which token of the source, from 0; -1 is the last.", "--word")] = -1,
    row: Annotated[
        int, param("Which of the decoder's rows: 0 is the start token's, -1 the last.", "--position", "-p")
    ] = -1,
) -> "Stacks":
    """The vectors of one token of the source up the encoder, and of one of the target up the decoder.

    Example: cutaway inspect stacks "The fox runs." --target "Le renard" --model my-translator
    """
    from cutaway.inspect.pairs import stacks as look

    return look(run, word, row)


@view("Before training, and after", "pairs.Learned", of="pair", remember=True)
def learned(
    run: "Run",
    reference: Annotated[
        str, param("The right translation.", "--reference", value="TEXT", high=LONGEST, served=REQUIRED)
    ] = "",
    k: Annotated[int, param("How many words to show for each place.", "-k", "--count", low=1, high=20)] = 5,
    seed: Annotated[int, param("Of the random weights.", "--seed", low=0, high=2**31)] = 0,
) -> "Learned":
    """What each word of the right translation is given, by this model and by one like it with random weights.

    Example: cutaway inspect learned "The fox runs." --reference "Le renard court." --model my-translator
    """
    from cutaway.inspect.pairs import learned as look

    return look(run, reference, k, seed)


@view("Sinusoids", "pairs.Sinusoids", of="pair", reads=("encoder.position_embedding",))
def sinusoids(
    run: "Run",
    layout: Annotated[str, param("interleaved or halves; without it, the model's.", "--layout", value="NAME")] = "",
    positions: Annotated[int, param("How many positions.", "--positions", low=1, high=512)] = 64,
    width: Annotated[int, param("How many columns; 0: the model's.", "--width", low=0, high=1024)] = 0,
) -> "Sinusoids":
    """What tells a Transformer where a token stands: sines and cosines, interleaved or in two halves.

    Example: cutaway inspect sinusoids "The fox" --layout halves --model my-translator
    """
    from cutaway.inspect.pairs import sinusoids as look

    return look(run, layout, positions, width)


PAIR_VIEWS = (translation, attentions, unrolled, stacks, learned, sinusoids)
