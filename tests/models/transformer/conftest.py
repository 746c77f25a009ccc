"""A Marian folder as transformers writes it: random weights, and vocabularies that SentencePiece learned here."""

from __future__ import annotations

import io
import json
import warnings
from pathlib import Path

import pytest
import torch

ENGLISH = [
    "The little fox runs over the hill.", "A man sleeps in the sun.", "She sees a dog and a cat.",
    "We eat bread, cheese & apples!", "Two children play with a red ball.",
]  # fmt: skip
FRENCH = [
    "Le petit renard court sur la colline.", "Un homme dort au soleil.", "Elle voit un chien et un chat.",
    "Nous mangeons du pain, du fromage & des pommes !", "Deux enfants jouent avec un ballon rouge.",
]  # fmt: skip


def learned(texts: list[str]) -> bytes:
    """SentencePiece's model of a few sentences."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts * 6), model_writer=model, vocab_size=70, character_coverage=1.0,
        hard_vocab_limit=False, bos_id=-1, eos_id=-1, minloglevel=9, num_threads=1,
    )  # fmt: skip
    return model.getvalue()


@pytest.fixture(scope="session")
def marian(tmp_path_factory) -> tuple[Path, object, object]:
    """The folder, and transformers' model and tokenizer of it."""
    import sentencepiece
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    folder = tmp_path_factory.mktemp("marian")
    pieces: list[str] = []
    for name, texts in (("source.spm", ENGLISH), ("target.spm", FRENCH)):
        (folder / name).write_bytes(model := learned(texts))
        cutter = sentencepiece.SentencePieceProcessor(model_proto=model)
        pieces += [cutter.id_to_piece(number) for number in range(1, cutter.get_piece_size())]
    names = ["</s>", "<unk>", *dict.fromkeys(pieces), ">>fra<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    pad = len(names) - 1
    torch.manual_seed(0)
    config = MarianConfig(
        vocab_size=len(names), max_position_embeddings=64, encoder_layers=2, decoder_layers=3, d_model=32,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
        activation_function="swish", scale_embedding=True, pad_token_id=pad, decoder_start_token_id=pad,
        forced_eos_token_id=0, dropout=0.0,
    )  # fmt: skip
    model = MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(torch.randn_like(parameter) * 0.15)
        model.final_logits_bias.normal_(std=0.3)
        model.final_logits_bias[0, 0] += 1.5  # so that some texts end
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of sacremoses, which changes no id
        tokenizer = MarianTokenizer(*(str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")))
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return folder, model, tokenizer
