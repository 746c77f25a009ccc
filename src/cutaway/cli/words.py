"""`cutaway words`: static word vectors, one a word whatever stands around it: neighbours, learning, other forms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cutaway.cli import options, screen
from cutaway.errors import CutawayError

if TYPE_CHECKING:
    from cutaway.words import WordVectors


def words(
    word: Annotated[
        list[str] | None, options.argument(metavar="WORD", help="The words whose neighbours to show.")
    ] = None,
    vectors: Annotated[
        Path | None,
        options.option(
            "--vectors", value="FILE", help="word2vec's text or binary form, or GloVe's. Default: the included."
        ),
    ] = None,
    learn: Annotated[
        list[Path] | None,
        options.option("--learn", value="FILE", help="Learn vectors from this text (skip-gram). Repeatable."),
    ] = None,
    output: Annotated[
        Path | None, options.option("--output", "-o", value="FILE", help="Write the vectors here.")
    ] = None,
    form: Annotated[
        str, options.option("--form", value="FORM", help="How to write them: word2vec, binary or glove.")
    ] = "word2vec",
    width: Annotated[int, options.option("--width", value="N", help="With --learn: numbers in a vector.")] = 50,
    epochs: Annotated[int, options.option("--epochs", value="N", help="With --learn: times through the text.")] = 3,
    seed: Annotated[
        int, options.option("--seed", "-s", value="N", help="With --learn: the same seed, the same vectors.")
    ] = 0,
    k: Annotated[int, options.option("-k", "--count", value="N", help="How many neighbours to show.")] = 10,
    as_json: options.AsJson = False,
) -> None:
    """Show the nearest words by static vectors; learn such vectors, or write them in another form.

    Example: cutaway words stick --vectors glove.6B.50d.txt

    Example: cutaway words king queen --learn stories.txt --output vectors.txt
    """
    if vectors is not None and learn:
        raise CutawayError("Give --vectors to read vectors or --learn to learn them, not both.")
    if k < 1:
        raise CutawayError(f"-k must be 1 or more, not {k}.")
    if not word and output is None:
        raise CutawayError(
            "Name a word whose neighbours to show, or --output for a file to write. See cutaway words --help."
        )
    table = learned(learn, width, epochs, seed) if learn else read(vectors)
    for one in word or ():
        near = table.nearest(one, k)
        if as_json:
            told = [{"word": other, "cosine": cosine} for other, cosine in near]
            screen.show_json({"vectors": table.name, "word": one, "nearest": told, "vector": table[one].tolist()})
        else:
            screen.put(f"{one}: {'  '.join(f'{screen.harmless(other)} {cosine:.2f}' for other, cosine in near)}\n")
    if output is not None:
        from cutaway.words import write_vectors

        try:
            write_vectors(table, output, form)
        except OSError as error:
            raise CutawayError(f"{output} cannot be written: {error.strerror or error}.") from None
        if not as_json:
            screen.put(f"{output}: {len(table):,} words, {table.width} numbers each\n")


def read(path: Path | None) -> WordVectors:
    """Those in a file, or the included ones."""
    from cutaway.words import read_vectors
    from cutaway.words.included import static_vectors

    return static_vectors() if path is None else read_vectors(path)


def learned(paths: list[Path], width: int, epochs: int, seed: int) -> WordVectors:
    """From the texts of files, a text a line."""
    from cutaway.words import learn_vectors
    from cutaway.words.skipgram import SkipGram

    texts = []
    for path in paths:
        try:
            texts += path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise CutawayError(f"{path} cannot be read as UTF-8 text: {error}.") from None
    with screen.working(f"learning from {len(texts):,} lines"):
        return learn_vectors(texts, SkipGram(width=width, epochs=epochs, seed=seed))
