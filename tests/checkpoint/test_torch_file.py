"""What torch.save wrote is read without running it: the same tensors as torch.load, and no code, ever."""

from __future__ import annotations

import collections
import io
import os
import pickle
import struct
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cutaway.checkpoint import torch_file
from cutaway.errors import CutawayError

FORMS = {"zip": True, "row": False}
DTYPES = list(torch_file.DTYPES.values())


def save(value: object, path: Path, form: str = "zip", **options: object) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=FORMS[form], **options)
    return path


def refused(path: Path, *words: str) -> None:
    with pytest.raises(CutawayError) as caught:
        torch_file.read_torch_file(path)
    for word in (path.name, *words):
        assert word in str(caught.value), str(caught.value)


def check_equal(path: Path, expected: dict[str, torch.Tensor]) -> None:
    found = torch_file.read_torch_file(path)
    assert list(found) == list(expected)
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert torch.equal(found[name], tensor), name


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    block = torch.randn(6, 10)
    return {
        "plain": torch.randn(3, 4, 5),
        "scalar": torch.tensor(2.5),
        "transposed": torch.randn(4, 7).T,
        "part": block[2:5, 1:9:3],
        "all of it": block,
        "same again": block,
        "parameter": torch.nn.Parameter(torch.randn(3)),
        **{str(dtype): torch.tensor([0, 1, 1, 0, 1]).to(dtype) for dtype in DTYPES},
    }


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("protocol", [2, 4])
def test_every_kind_of_tensor_is_read_as_torch_reads_it(
    tmp_path: Path, state: dict[str, torch.Tensor], form: str, protocol: int
) -> None:
    path = save(state, tmp_path / "x.bin", form, pickle_protocol=protocol)
    check_equal(path, state)
    if protocol == 2:  # which torch itself can read without running it
        check_equal(path, torch.load(path, weights_only=True))


@pytest.mark.parametrize("form", FORMS)
def test_a_modules_state_dict_is_read_with_its_notes_ignored(tmp_path: Path, form: str) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    assert hasattr(module.state_dict(), "_metadata")
    check_equal(save(module.state_dict(), tmp_path / "x.bin", form), dict(module.state_dict()))


def test_the_older_form_is_read_whatever_its_alignment(tmp_path: Path) -> None:
    for length in range(1, 9):
        state = {"n" * length: torch.arange(5.0), "m" * length: torch.arange(3, dtype=torch.float64)}
        path = save(state, tmp_path / "x.bin", "row")
        check_equal(path, state)
        for tensor in torch_file.read_torch_file(path).values():  # not every machine can compute with others
            assert tensor.data_ptr() % tensor.itemsize == 0


def test_numbers_of_a_big_endian_machine_are_turned_round(tmp_path: Path) -> None:
    state = {str(dtype): torch.tensor([1, 0, 1]).to(dtype) for dtype in DTYPES}
    path = save(state, tmp_path / "x.bin")
    other = tmp_path / "big.bin"
    sizes = [dtype.itemsize for dtype in DTYPES]
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as new:
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename.endswith("/byteorder"):
                content = b"big"
            elif "/data/" in entry.filename:
                size = sizes[int(entry.filename.rpartition("/")[2])]
                content = b"".join(content[i : i + size][::-1] for i in range(0, len(content), size))
            new.writestr(entry.filename, content)
    check_equal(other, state)


def test_reading_does_not_change_the_file_nor_follow_changes_of_the_tensor(tmp_path: Path) -> None:
    path = save({"a": torch.zeros(4)}, tmp_path / "x.bin")
    before = path.read_bytes()
    torch_file.read_torch_file(path)["a"].fill_(1)
    assert path.read_bytes() == before


# Pickles that would do something


class Payload:
    """Unpickled, this makes a file."""

    def __init__(self, path: Path, call: object = os.system):
        self.path, self.call = path, call

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return self.call, (f"touch {self.path}" if self.call is os.system else f"open({str(self.path)!r}, 'w')",)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("call", [os.system, eval, exec])
def test_a_pickle_that_would_run_a_command_is_refused_and_does_not_run(tmp_path: Path, form: str, call: object) -> None:
    trap = tmp_path / "trap"
    path = save({"wte.weight": Payload(trap, call)}, tmp_path / "x.bin", form)
    names = {os.system: f"{os.system.__module__}.system", eval: "__builtin__.eval", exec: "__builtin__.exec"}
    refused(path, "something other than tensors", names[call], "safetensors")
    assert not trap.exists()
    torch.load(path, weights_only=False)  # the trap does work
    assert trap.exists()


def test_a_bare_pickle_that_would_run_a_command_is_refused_and_does_not_run(tmp_path: Path) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path = tmp_path / "x.bin"
        path.write_bytes(pickle.dumps(Payload(tmp_path / "trap"), protocol))
        refused(path)
        assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize(
    "text",
    [b"cos\nsystem\n(S'touch trap'\ntR.", b"(S'touch trap'\nios\nsystem\n.", b"c__builtin__\neval\n.", b"\x82\x01."],
    ids=["GLOBAL", "INST", "eval", "EXT1"],
)
def test_other_ways_to_call_something_are_refused(tmp_path: Path, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.bin").write_bytes(text)
    refused(tmp_path / "x.bin", "something other than tensors")
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize(
    "value",
    [
        [torch.zeros(2)],
        torch.zeros(2),
        {"model": {"a": torch.zeros(2)}},
        {"step": 3},
        {"a": "text"},
        {"a": collections.Counter()},
        {"a": torch.zeros(2).to_sparse()},
        {"a": torch.nn.Linear(2, 2)},
        {"a": 1.5},
        {"a": b"bytes"},
        {"a": {1, 2}},
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("form", FORMS)
def test_anything_but_a_dict_of_tensors_is_refused(tmp_path: Path, value: object, form: str) -> None:
    refused(save(value, tmp_path / "x.bin", form), "something other than tensors")


# Files that lie


def pickled(shape: tuple[int, ...], stride: tuple[int, ...], offset: int = 0, count: int = 6, names: int = 1) -> bytes:
    """The pickle of tensors as torch.save writes it, for a storage called 0."""

    class Storage:
        pass

    class Pickler(pickle.Pickler):
        def persistent_id(self, value: object) -> object:
            return ("storage", torch.FloatStorage, "0", "cpu", count) if isinstance(value, Storage) else None

    class Tensor:
        def __reduce__(self) -> object:
            hooks = collections.OrderedDict()
            return torch._utils._rebuild_tensor_v2, (Storage(), offset, shape, stride, False, hooks)

    buffer = io.BytesIO()
    Pickler(buffer, 2).dump({f"t{i}": Tensor() for i in range(names)})
    return buffer.getvalue()


def archive(path: Path, program: bytes, data: bytes = bytes(24), **options: object) -> Path:
    with zipfile.ZipFile(path, "w", **options) as file:
        file.writestr("x/data.pkl", program)
        file.writestr("x/data/0", data)
    return path


def test_an_honest_archive_is_read(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.bin", pickled((2, 3), (3, 1)), struct.pack("<6f", *range(6)))
    assert torch.equal(torch_file.read_torch_file(path)["t0"], torch.arange(6.0).view(2, 3))


@pytest.mark.parametrize(
    "lie",
    [
        {"shape": (7,), "stride": (1,)},
        {"shape": (3, 3), "stride": (2, 1)},
        {"shape": (6,), "stride": (1,), "offset": 1},
        {"shape": (6,), "stride": (1,), "offset": -1},
        {"shape": (2,), "stride": (6,)},
        {"shape": (2,), "stride": (-1,), "offset": 3},
        {"shape": (-1,), "stride": (1,)},
        {"shape": (2**62, 4), "stride": (0, 0)},
        {"shape": (1000,), "stride": (0,)},
        {"shape": (6,), "stride": ()},
        {"shape": (0, 2**80), "stride": (1, 1)},
        {"shape": (1,) * 1000, "stride": (1,) * 1000},
        {"shape": (6,), "stride": (1,), "count": 7},
        {"shape": (6,), "stride": (1,), "count": 5},
        {"shape": (6,), "stride": (1,), "count": 2**62},
        {"shape": (True,), "stride": (1,)},
        {"shape": ("6",), "stride": (1,)},
        {"shape": [6], "stride": (1,)},
    ],
    ids=str,
)
def test_a_tensor_that_does_not_fit_its_numbers_is_refused(tmp_path: Path, lie: dict[str, object]) -> None:
    refused(archive(tmp_path / "x.bin", pickled(**lie)), "damaged")


def test_a_small_file_that_wants_a_large_memory_is_refused(tmp_path: Path) -> None:
    program = pickled((10_000,), (1,), count=10_000, names=100)
    refused(archive(tmp_path / "x.bin", program, bytes(40_000)), "tensors of 4,000,000 bytes")


def test_a_compressed_archive_is_refused_before_it_grows(tmp_path: Path) -> None:
    path = archive(tmp_path / "x.bin", pickled((6,), (1,)), bytes(10**7), compression=zipfile.ZIP_DEFLATED)
    refused(path, "compressed")


def test_a_pickle_that_goes_on_and_on_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_file, "STEPS", 10_000)
    refused(archive(tmp_path / "x.bin", b"\x80\x02" + b"}" * 11_000 + b"."), "far too much")


def test_a_container_nested_without_end_is_refused_without_recursion(tmp_path: Path) -> None:
    depth = 20 * sys.getrecursionlimit()
    refused(archive(tmp_path / "x.bin", b"\x80\x02)" + b"\x85" * depth + b"."))
    refused(archive(tmp_path / "x.bin", b"\x80\x02})" + b"\x85" * depth + b"Ks."))


def test_a_storage_the_archive_does_not_have_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.bin", "w") as file:
        file.writestr("x/data.pkl", pickled((6,), (1,)))
    refused(tmp_path / "x.bin", "damaged")


@pytest.mark.parametrize("content", [b"", b"P", b"PK\x03\x04", b"hello, I am text\n" * 10, bytes(1000), b"\x80\x02."])
def test_what_is_not_such_a_file_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.bin").write_bytes(content)
    refused(tmp_path / "x.bin")


@pytest.mark.parametrize("form", FORMS)
def test_a_file_cut_off_anywhere_is_refused(tmp_path: Path, form: str) -> None:
    path = save({"a": torch.arange(10.0), "b": torch.arange(4).to(torch.float16)}, tmp_path / "x.bin", form)
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        refused(path)


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path: Path, form: str, data: st.DataObject) -> None:
    path = save({"a": torch.arange(6.0).view(2, 3), "b": torch.ones(3, dtype=torch.int16)}, tmp_path / "x.bin", form)
    content = bytearray(path.read_bytes())
    changes = st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), min_size=1, max_size=4)
    for at, byte in data.draw(changes):
        content[at] = byte
    path.write_bytes(content)
    try:
        for tensor in torch_file.read_torch_file(path).values():
            assert tensor.numel() <= len(content)
            tensor.sum()
    except CutawayError:
        pass
