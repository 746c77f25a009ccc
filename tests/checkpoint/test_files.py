"""A folder is written whole or not at all, and what was there before survives whatever goes wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer

from cutaway import checkpoint
from cutaway.checkpoint import huggingface, names
from cutaway.checkpoint.files import shown
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config
from cutaway.text.tokenizer import Tokenizer


def ours(**changes: object) -> GPT:
    torch.manual_seed(1)
    return GPT(Config(vocabulary=99, context=20, width=24, layers=3, heads=4, end_token=7).but(**changes)).eval()


def same(a: GPT, b: GPT) -> bool:
    one, two = a.state_dict(), b.state_dict()
    return one.keys() == two.keys() and all(torch.equal(one[name], two[name]) for name in one)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    checkpoint.write_model(ours(), None, tmp_path / "model")
    return tmp_path / "model"


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class Notes:
    """A tokenizer that only writes a file."""

    def save(self, folder: Path) -> None:
        (folder / "tokenizer.json").write_text("{}")


def test_other_files_in_the_folder_are_left_alone(folder: Path) -> None:
    (folder / "README.md").write_text("mine")
    (folder / "pytorch_model.bin").write_text("mine too")
    checkpoint.write_model(ours(layers=2), Notes(), folder)
    assert (folder / "README.md").read_text() == "mine"
    assert (folder / "pytorch_model.bin").read_text() == "mine too"
    assert (folder / "tokenizer.json").exists()
    assert same(checkpoint.read_model(folder), ours(layers=2))


def test_the_tokenizers_files_come_with_the_model(tmp_path: Path) -> None:
    tokenizer = Tokenizer.load("gpt2")
    checkpoint.write_model(ours(), tokenizer, tmp_path / "model")
    again = Tokenizer.load(tmp_path / "model")
    text = "A robot must obey the orders given it."
    assert again.encode(text) == tokenizer.encode(text)
    assert AutoTokenizer.from_pretrained(tmp_path / "model").encode(text) == tokenizer.encode(text)


def test_one_file_replaces_shards_and_shards_replace_one_file(folder: Path) -> None:
    for limit, layers in ((20_000, 2), (10**9, 1), (20_000, 3)):
        model = ours(layers=layers)
        checkpoint.write_model(model, None, folder, shard_bytes=limit)
        assert same(checkpoint.read_model(folder), model)
        assert len(list(folder.glob("*.index.json"))) == (limit < 10**9)
        assert (folder / "model.safetensors").exists() == (limit == 10**9)


def test_nothing_temporary_is_left_behind(folder: Path) -> None:
    checkpoint.write_model(ours(layers=1), None, folder)
    assert sorted(listing(folder)) == ["config.json", "generation_config.json", "model.safetensors"]
    assert [path.name for path in folder.parent.iterdir()] == ["model"]


def fill_the_disk(monkeypatch: pytest.MonkeyPatch, nth: int, method: str) -> None:
    """Make the nth call of a Path's method fail as it does on a full disk."""
    calls = 0
    real = getattr(Path, method)

    def fail(self: Path, *args: object, **kwargs: object) -> object:
        nonlocal calls
        calls += 1
        if calls == nth:
            raise OSError(28, "No space left on device")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, method, fail)


@pytest.mark.parametrize(
    ("method", "nth"), [("mkdir", 1), ("open", 1), ("write_text", 2), *(("replace", nth) for nth in range(1, 7))]
)
def test_a_full_disk_leaves_the_old_checkpoint_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, method: str, nth: int
) -> None:
    before = listing(folder)
    with monkeypatch.context() as patch:
        fill_the_disk(patch, nth, method)
        with pytest.raises(CutawayError, match=r"No space left on device \(about .* bytes are needed\).*unchanged"):
            checkpoint.write_model(ours(layers=1), None, folder)
    assert listing(folder) == before
    assert same(checkpoint.read_model(folder), ours())


@pytest.mark.parametrize(("method", "nth"), [("mkdir", 1), ("open", 1), ("write_text", 2), ("rename", 1)])
def test_a_full_disk_leaves_nothing_where_nothing_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, nth: int
) -> None:
    with monkeypatch.context() as patch:
        fill_the_disk(patch, nth, method)
        with pytest.raises(CutawayError, match="No space left on device"):
            checkpoint.write_model(ours(), None, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_disk_that_fills_while_weights_are_written_is_an_oserror_and_not_a_short_file() -> None:
    model = ours()
    with pytest.raises(OSError, match="No space left"):
        huggingface.write_safetensors(Path("/dev/full"), list(names.stored_tensors(model)), torch.float32)


def test_a_tokenizer_that_fails_leaves_the_old_checkpoint(folder: Path) -> None:
    class Broken:
        def save(self, folder: Path) -> None:
            raise RuntimeError("broken")

    before = listing(folder)
    with pytest.raises(RuntimeError, match="broken"):
        checkpoint.write_model(ours(layers=1), Broken(), folder)
    assert listing(folder) == before


def test_the_config_is_the_first_to_go_and_the_last_to_come(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moves = []
    real = Path.replace

    def watch(self: Path, target: Path) -> Path:
        moves.append((self.name, target.parent == folder))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", watch)
    checkpoint.write_model(ours(layers=1), None, folder)
    assert moves[0] == ("config.json", False)
    assert moves[-1] == ("config.json", True)


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CutawayError, match="Nothing could be written to"):
        checkpoint.write_model(ours(), None, tmp_path / "file" / "model")
    with pytest.raises(CutawayError, match="is a file"):
        checkpoint.write_model(ours(), None, tmp_path / "file")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="the superuser may write anywhere")
def test_a_folder_without_permission_is_refused(folder: Path) -> None:
    folder.chmod(0o500)
    with pytest.raises(CutawayError, match="Permission denied"):
        checkpoint.write_model(ours(), None, folder)
    folder.chmod(0o700)


def test_a_model_that_could_not_be_read_back_is_not_written(folder: Path) -> None:
    before = listing(folder)
    model = ours()
    with torch.no_grad():
        model.final_norm.bias.fill_(1e6)
    with pytest.raises(
        CutawayError, match=r"transformer\.ln_f\.bias cannot be written as F16: it has values too large"
    ):
        checkpoint.write_model(model, None, folder, dtype=torch.float16)
    with torch.no_grad():
        model.final_norm.bias[3] = float("nan")
    with pytest.raises(CutawayError, match=r"transformer\.ln_f\.bias .* NaN"):
        checkpoint.write_model(model, None, folder)
    with pytest.raises(CutawayError, match=r"torch\.int8"):
        checkpoint.write_model(model, None, folder, dtype=torch.int8)
    assert listing(folder) == before


def test_a_name_out_of_a_file_cannot_command_the_terminal() -> None:
    assert shown("transformer.wte.weight") == "transformer.wte.weight"
    assert shown("\x1b[2J\ud800") == r"'\x1b[2J\ud800'"
    assert len(shown("n" * 10**6)) < 200
