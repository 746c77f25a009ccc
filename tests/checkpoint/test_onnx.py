"""Our ONNX file gives our model's logits in onnxruntime: whole, step by step, and in padded batches."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from cutaway.checkpoint import onnx as export
from cutaway.errors import CutawayError
from cutaway.models.gpt2.model import GPT
from cutaway.models.gpt2.shape import Config

SHAPE = Config(vocabulary=97, context=32, width=48, layers=3, heads=4)


def random_model(config: Config) -> GPT:
    torch.manual_seed(0)
    model = GPT(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


class Session:
    """The file in onnxruntime, called the way the documentation says."""

    def __init__(self, path: Path, config: Config):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.config = config

    def nothing(self, batch: int) -> dict[str, np.ndarray]:
        shape = (batch, self.config.heads, 0, self.config.head_width)
        empty = np.zeros(shape, np.float32)
        return {f"past_key_values.{i}.{part}": empty for i in range(self.config.layers) for part in ("key", "value")}

    def run(self, ids, mask=None, past=None) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        ids = np.asarray(ids)
        past = self.nothing(len(ids)) if past is None else past
        columns = past["past_key_values.0.key"].shape[2] + ids.shape[1]
        mask = np.ones((len(ids), columns), np.int64) if mask is None else np.asarray(mask)
        positions = (mask.cumsum(axis=1) - 1).clip(min=0)[:, -ids.shape[1] :]
        feed = {"input_ids": ids, "attention_mask": mask, "position_ids": positions, **past}
        logits, *kept = self.session.run(None, feed)
        return logits, dict(zip(self.nothing(1), kept, strict=True))


@pytest.fixture(scope="module")
def model() -> GPT:
    return random_model(SHAPE)


@pytest.fixture(scope="module")
def session(model: GPT, tmp_path_factory: pytest.TempPathFactory) -> Session:
    path = tmp_path_factory.mktemp("onnx") / "model.onnx"
    export.write_onnx(model, path)
    return Session(path, SHAPE)


@pytest.fixture(scope="module")
def ids() -> torch.Tensor:
    return torch.randint(SHAPE.vocabulary, (2, 20), generator=torch.Generator().manual_seed(1))


@torch.inference_mode()
def ours(model: GPT, ids: torch.Tensor) -> np.ndarray:
    return model(ids).numpy()


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tied": False},
        {"scale_by_layer": True},
        {"activation": "gelu"},
        {"activation": "relu"},
        {"activation": "silu"},
        {"norm_epsilon": 0.1},
        {"width": 30, "heads": 3, "mlp_width": 50, "layers": 1},
    ],
    ids=lambda changes: ", ".join(f"{name} {value}" for name, value in changes.items()) or "as GPT-2",
)
def test_onnxruntime_gives_our_logits(changes: dict, ids: torch.Tensor, tmp_path: Path):
    model = random_model(SHAPE.but(**changes))
    export.write_onnx(model, tmp_path / "model.onnx")
    onnx.checker.check_model(tmp_path / "model.onnx", full_check=True)
    logits, _ = Session(tmp_path / "model.onnx", model.config).run(ids)
    expected = ours(model, ids)
    assert expected.std() > 0.5
    assert np.abs(logits - expected).max() < 1e-4


def test_the_kept_keys_and_values_stand_for_the_tokens_before(session: Session, model: GPT, ids: torch.Tensor):
    whole, kept_whole = session.run(ids)
    first, kept = session.run(ids[:, :7])
    middle, kept = session.run(ids[:, 7:12], past=kept)
    pieces = [first, middle]
    for column in range(12, ids.shape[1]):
        logits, kept = session.run(ids[:, column : column + 1], past=kept)
        pieces.append(logits)
    assert np.abs(np.concatenate(pieces, axis=1) - ours(model, ids)).max() < 1e-4
    for name, value in kept_whole.items():
        assert np.abs(value - kept[name]).max() < 1e-4
    assert not np.allclose(whole[:, 12:], session.run(ids[:, 12:])[0], atol=1e-2)  # what was kept did matter


def test_a_padded_batch_gives_what_each_prompt_gives_alone(session: Session, model: GPT, ids: torch.Tensor):
    prompts = [ids[0, :9], ids[1, :4], ids[0, 5:6]]
    batch = torch.full((3, 9), 5)
    mask = np.zeros((3, 9), np.int64)
    for row, prompt in enumerate(prompts):
        batch[row, 9 - len(prompt) :] = prompt
        mask[row, 9 - len(prompt) :] = 1
    logits, kept = session.run(batch, mask)
    for row, prompt in enumerate(prompts):
        assert np.abs(logits[row, 9 - len(prompt) :] - ours(model, prompt[None])[0]).max() < 1e-4

    new = torch.tensor([[3], [60], [41]])
    logits, _ = session.run(new, np.pad(mask, ((0, 0), (0, 1)), constant_values=1), kept)
    for row, prompt in enumerate(prompts):
        alone = ours(model, torch.cat([prompt, new[row]])[None])[0, -1]
        assert np.abs(logits[row, -1] - alone).max() < 1e-4


def test_the_last_position_can_be_used_and_the_next_is_refused(session: Session, model: GPT):
    full = torch.arange(SHAPE.context)[None]
    assert np.abs(session.run(full)[0] - ours(model, full)).max() < 1e-4
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(torch.arange(SHAPE.context + 1)[None])


def test_the_weights_in_the_file_are_the_models_own(model: GPT, tmp_path: Path):
    export.write_onnx(model, tmp_path / "model.onnx")
    there = {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in onnx.load(tmp_path / "model.onnx").graph.initializer
    }
    for name, parameter in model.named_parameters():
        turned = parameter.ndim == 2 and "embedding" not in name
        assert np.array_equal(there[name].T if turned else there[name], parameter.detach().numpy()), name


def test_the_frame_written_by_hand_is_the_one_the_library_would_write(model: GPT, tmp_path: Path):
    export.write_onnx(model, tmp_path / "model.onnx")
    written = (tmp_path / "model.onnx").read_bytes()
    assert len(onnx.load_from_string(written).SerializeToString()) == len(written)


@pytest.mark.parametrize(("number", "length"), [(5, 0), (7, 127), (9, 128), (15, 16_384), (16, 2**31 - 1)])
def test_a_field_begins_with_its_number_and_length(number: int, length: int):
    from google.protobuf.internal import encoder

    expected = bytearray()
    encoder._EncodeVarint(expected.extend, number << 3 | 2)
    encoder._EncodeVarint(expected.extend, length)
    assert export.prefix(number, length) == bytes(expected)


def test_a_large_model_has_its_weights_in_a_second_file(
    model: GPT, ids: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    home, away = tmp_path / "home", tmp_path / "away"
    with monkeypatch.context() as patch:
        patch.setattr(export, "LARGEST", 1_000)
        export.write_onnx(model, home / "model.onnx")
    assert {file.name for file in home.iterdir()} == {"model.onnx", "model.onnx.data"}
    assert (home / "model.onnx").stat().st_size < 50_000
    home.rename(away)  # the two stay together wherever they go
    onnx.checker.check_model(away / "model.onnx", full_check=True)
    assert np.abs(Session(away / "model.onnx", SHAPE).run(ids)[0] - ours(model, ids)).max() < 1e-4

    export.write_onnx(model, away / "model.onnx")  # now small enough for one: the other would only lie about
    assert [file.name for file in away.iterdir()] == ["model.onnx"]
    assert np.abs(Session(away / "model.onnx", SHAPE).run(ids)[0] - ours(model, ids)).max() < 1e-4


def test_a_model_in_half_precision_is_written_in_float32(model: GPT, ids: torch.Tensor, tmp_path: Path):
    half = random_model(SHAPE).to(torch.bfloat16)
    export.write_onnx(half, tmp_path / "model.onnx")
    logits, _ = Session(tmp_path / "model.onnx", SHAPE).run(ids)
    assert np.abs(logits - ours(half.float(), ids)).max() < 1e-4


def test_the_file_says_what_it_is(session: Session):
    facts = session.session.get_modelmeta()
    assert facts.producer_name == "cutaway"
    assert facts.custom_metadata_map == {"architecture": "gpt2", "context": "32", "end_token": "96"}
    named = [value.name for value in session.session.get_inputs()]
    assert named[:4] == ["input_ids", "attention_mask", "position_ids", "past_key_values.0.key"]
    assert [value.name for value in session.session.get_outputs()][:3] == ["logits", "present.0.key", "present.0.value"]
    assert session.session.get_inputs()[3].shape == ["batch", 4, "past", 12]


def test_progress_counts_to_the_end(model: GPT, tmp_path: Path):
    seen: list[tuple[int, int]] = []
    export.write_onnx(model, tmp_path / "model.onnx", progress=lambda done, total: seen.append((done, total)))
    total = 4 * sum(parameter.numel() for parameter in model.parameters())
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


@pytest.mark.parametrize("largest", [export.LARGEST, 1_000], ids=["one file", "two files"])
def test_a_full_disk_leaves_what_was_there(model: GPT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, largest: int):
    monkeypatch.setattr(export, "LARGEST", largest)
    (tmp_path / "model.onnx").write_text("the old one")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(CutawayError, match="could be written"):
            export.write_onnx(model, tmp_path / "model.onnx")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [file.name for file in tmp_path.iterdir()] == ["model.onnx"]
    assert (tmp_path / "model.onnx").read_text() == "the old one"


def test_a_model_that_holds_nan_is_refused_by_name(tmp_path: Path):
    model = random_model(SHAPE)
    with torch.no_grad():
        model.blocks[1].mlp.widen.weight[3, 4] = float("nan")
    with pytest.raises(CutawayError, match=r"blocks\.1\.mlp\.widen\.weight"):
        export.write_onnx(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_not_overwritten_by_a_file(model: GPT, tmp_path: Path):
    with pytest.raises(CutawayError, match="is a folder"):
        export.write_onnx(model, tmp_path)


def test_without_the_library_the_error_names_the_extra(model: GPT, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(CutawayError, match=r"pip install 'cutaway\[export\]'"):
        export.write_onnx(model, tmp_path / "model.onnx")


@pytest.mark.slow
def test_gpt2_small_in_onnxruntime_gives_our_logits(tmp_path: Path):
    torch.manual_seed(0)
    model = GPT(Config()).eval()
    export.write_onnx(model, tmp_path / "gpt2.onnx")
    ids = torch.randint(50_257, (1, 200))
    session = Session(tmp_path / "gpt2.onnx", model.config)
    first, kept = session.run(ids[:, :150])
    second, _ = session.run(ids[:, 150:], past=kept)
    assert np.abs(np.concatenate([first, second], axis=1) - ours(model, ids)).max() < 1e-4
