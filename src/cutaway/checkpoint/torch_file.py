"""Tensors out of a file torch.save wrote (`pytorch_model.bin`), without running it.

Such a file is a pickle, a small program that may call anything, with the numbers beside it. Here the program is never
run: its steps are read one by one, the few that describe tensors are understood, and anything else is refused. There
are two forms: a zip archive (since torch 1.6) and, before that, pickles and numbers in a row.
"""

from __future__ import annotations

import io
import math
import mmap
import pickletools
import struct
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cutaway.checkpoint.files import Lazy, check, shown
from cutaway.errors import CutawayError

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL = 1001
DIMENSIONS = 8
PICKLE_BYTES = 16_000_000  # that of GPT-2 XL has 60,000, in 30,000 steps
STEPS = 1_000_000
BROKEN = (ValueError, LookupError, TypeError, EOFError, OSError, NotImplementedError, struct.error, zipfile.BadZipFile)
"""What walking through a damaged file may end in."""
DTYPES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "BoolStorage": torch.bool,
    "ByteStorage": torch.uint8,
    "CharStorage": torch.int8,
    "ShortStorage": torch.int16,
    "IntStorage": torch.int32,
    "LongStorage": torch.int64,
}
TENSORS = ("_rebuild_tensor", "_rebuild_tensor_v2")
ALLOWED = {
    ("collections", "OrderedDict"),
    ("torch", "Size"),
    ("torch._utils", "_rebuild_parameter"),
    *(("torch._utils", name) for name in TENSORS),
    *(("torch", name) for name in DTYPES),
}


@dataclass(frozen=True)
class Global:
    """A name out of some module: only ever a label here."""

    module: str
    name: str


@dataclass(frozen=True)
class Storage:
    """A row of numbers that tensors are views of."""

    key: str
    dtype: torch.dtype
    count: int


@dataclass(frozen=True)
class View:
    """A tensor: which numbers of a storage it has, and in which order."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def fits(self) -> bool:
        """Whether it lies inside its storage and is not larger (nor empty, which no weight is)."""
        shape, stride = self.shape, self.stride
        if not 0 <= len(shape) == len(stride) <= DIMENSIONS or min((self.offset, *shape, *stride)) < 0:
            return False
        last = self.offset + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        return 0 < math.prod(shape) <= self.storage.count and last < self.storage.count


class Refused(Exception):
    """The file says something other than which tensors it holds."""


class Damaged(Exception):
    """The file ends early, or contradicts itself."""


def read_torch_file(path: Path) -> Lazy:
    """The tensors of the file by name, each read when asked for."""
    return read_part(path, lambda whole: whole)


def read_part(path: Path, choose: Callable[[Any], Any]) -> Lazy:
    """The tensors of that part of the file which `choose` finds in the whole: nested containers of plain values."""
    check(path)
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        zipped = data[:4] == b"PK\x03\x04"
        views, places, swapped = _read_zip(data, path, choose) if zipped else _read_row(data, choose)
        _check_bounds(views, len(data))
    except Refused as error:
        raise CutawayError(
            f"{path} holds something other than tensors ({error}), and is never executed. "
            "Convert it to safetensors on a machine where you can trust it, or ask its author for safetensors."
        ) from None
    except (Damaged, *BROKEN) as error:
        raise CutawayError(
            f"{path} is not a file of tensors written by torch.save, or is damaged ({shown(str(error))})."
        ) from None
    return Lazy({name: partial(_tensor, data, view, places[view.storage.key], swapped) for name, view in views.items()})


def read_plain(path: Path) -> Any:
    """What a pickle of plain values and containers describes, without running it."""
    if check(path).stat().st_size > PICKLE_BYTES:
        raise CutawayError(f"{path} is far too large for such a file.")
    try:
        return _unpickle(io.BytesIO(path.read_bytes()))
    except (Refused, Damaged, *BROKEN) as error:
        raise CutawayError(f"{path} holds more than plain values, or is damaged ({shown(str(error))}).") from None


def _tensor(data: mmap.mmap, view: View, place: int, swapped: bool) -> Tensor:
    """The tensor itself: a view of the file where the machine can read its numbers as they lie there."""
    storage, size = view.storage, view.storage.dtype.itemsize
    raw = torch.frombuffer(data, dtype=torch.uint8, offset=place, count=storage.count * size)
    if swapped:
        raw = raw.view(-1, size).flip(-1).flatten()
    elif place % size:
        raw = raw.clone()
    return raw.view(storage.dtype).as_strided(view.shape, view.stride, view.offset)


def _read_zip(
    data: mmap.mmap, path: Path, choose: Callable[[Any], Any]
) -> tuple[dict[str, View], dict[str, int], bool]:
    """Views, where their storages begin, and whether the bytes of each number are the other way round."""
    with zipfile.ZipFile(path) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        root = next((name.removesuffix("data.pkl") for name in entries if name.endswith("/data.pkl")), None)
        if root is None:
            raise Damaged("a zip archive without data.pkl")
        places = {}
        for name, entry in entries.items():
            if (
                entry.compress_type != zipfile.ZIP_STORED
                or entry.flag_bits & 1
                or entry.file_size != entry.compress_size
            ):
                raise Damaged(f"{shown(name)} is compressed, which torch never does")
            header = data[entry.header_offset : entry.header_offset + 30]
            lengths = struct.unpack("<26xHH", header)  # of the name and of an extra field, before the content
            places[name] = entry.header_offset + 30 + sum(lengths)
            if entry.header_offset < 0 or places[name] + entry.file_size > len(data):
                raise Damaged(f"{shown(name)} is cut off")

    def content(name: str) -> bytes:
        return data[places[name] : places[name] + min(entries[name].file_size, PICKLE_BYTES)]

    views = _views(choose(_unpickle(io.BytesIO(content(f"{root}data.pkl")))))
    for view in views.values():
        name = f"{root}data/{view.storage.key}"
        if entries[name].file_size != view.storage.count * view.storage.dtype.itemsize:
            raise Damaged(f"{shown(name)} has {entries[name].file_size:,} bytes")
    order = content(f"{root}byteorder") if f"{root}byteorder" in entries else b"little"
    keys = {view.storage.key for view in views.values()}
    return views, {key: places[f"{root}data/{key}"] for key in keys}, order == b"big"


def _read_row(data: mmap.mmap, choose: Callable[[Any], Any]) -> tuple[dict[str, View], dict[str, int], bool]:
    """The same from the older form: magic number, version, machine, object, keys of the storages, then each storage."""
    file = io.BytesIO(data[:PICKLE_BYTES])
    if _unpickle(file) != MAGIC or _unpickle(file) != PROTOCOL:
        raise Damaged("it does not begin as such a file does")
    _unpickle(file)  # about the machine; numbers are always little-endian in this form
    views = _views(choose(_unpickle(file)))
    storages = {view.storage.key: view.storage for view in views.values()}
    keys = _unpickle(file)
    places, at = {}, file.tell()
    if not isinstance(keys, list) or not storages.keys() <= {key for key in keys if isinstance(key, str)}:
        raise Damaged("a storage is missing")
    for key in keys:
        if key not in storages:
            raise Damaged("a storage that no tensor uses")
        (count,) = struct.unpack("<q", data[at : at + 8])
        if count != storages[key].count:
            raise Damaged(f"storage {shown(key)} has {count:,} numbers")
        places[key] = at + 8
        at += 8 + count * storages[key].dtype.itemsize
        if at > len(data):
            raise Damaged("it is cut off")
    return views, places, False


def _views(value: object) -> dict[str, View]:
    """The names and tensors of a state dict."""
    if not isinstance(value, dict):
        raise Refused(f"a {type(value).__name__}")
    for name, item in value.items():
        if not isinstance(name, str) or not isinstance(item, View):
            raise Refused(f"{shown(str(name))} is a {type(item).__name__}")
    return value


def _check_bounds(views: Mapping[str, View], size: int) -> None:
    """No tensor may reach outside its storage, nor all of them together be much more than the file."""
    total = 0
    for name, view in views.items():
        if not view.fits:
            raise Damaged(f"{shown(name)} does not fit its {view.storage.count:,} numbers")
        total += math.prod(view.shape) * view.storage.dtype.itemsize
    if total > 2 * size:  # tied matrices are two views of one storage; more is a small file that wants a large memory
        raise Damaged(f"tensors of {total:,} bytes in a file of {size:,}")


@dataclass
class _Machine:
    """The stack and the memory of a pickle, holding nothing but labels, numbers, text and containers."""

    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memory: dict[int, Any] = field(default_factory=dict)

    def since_mark(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items


def _unpickle(file: io.BytesIO) -> Any:
    """What one pickle describes: the file is left just behind it."""
    machine = _Machine()
    for steps, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name == "STOP":
            return machine.stack.pop()
        if steps > STEPS:
            raise Damaged("it describes far too much")
        _step(machine, opcode.name, argument)
    raise Damaged("it is cut off")


def _step(machine: _Machine, name: str, argument: Any) -> None:
    stack = machine.stack
    match name:
        case "PROTO" | "FRAME":
            pass
        case "MARK":
            machine.marks.append(len(stack))
        case "NONE" | "NEWTRUE" | "NEWFALSE":
            stack.append({"NONE": None, "NEWTRUE": True, "NEWFALSE": False}[name])
        case "BININT" | "BININT1" | "BININT2" | "LONG1" | "BINFLOAT" | "BINUNICODE" | "SHORT_BINUNICODE":
            stack.append(argument)
        case "EMPTY_DICT" | "EMPTY_LIST" | "EMPTY_TUPLE":
            stack.append({"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}[name]())
        case "TUPLE":
            stack.append(tuple(machine.since_mark()))
        case "TUPLE1" | "TUPLE2" | "TUPLE3":
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        case "APPEND":
            item = stack.pop()
            _expect(stack[-1], list).append(item)
        case "APPENDS":
            items = machine.since_mark()
            _expect(stack[-1], list).extend(items)
        case "SETITEM":
            item, key = stack.pop(), stack.pop()
            _expect(stack[-1], dict)[_key(key)] = item
        case "SETITEMS":
            items = machine.since_mark()
            target = _expect(stack[-1], dict)
            for key, item in zip(items[::2], items[1::2], strict=True):
                target[_key(key)] = item
        case "BINPUT" | "LONG_BINPUT":
            machine.memory[argument] = stack[-1]
        case "MEMOIZE":
            machine.memory[len(machine.memory)] = stack[-1]
        case "BINGET" | "LONG_BINGET":
            stack.append(machine.memory[argument])
        case "GLOBAL":
            stack.append(_global(*argument.split(" ", 1)))
        case "STACK_GLOBAL":
            label, module = stack.pop(), stack.pop()
            stack.append(_global(_expect(module, str), _expect(label, str)))
        case "BINPERSID":
            stack.append(_storage(_expect(stack.pop(), tuple)))
        case "REDUCE":
            arguments, called = _expect(stack.pop(), tuple), _expect(stack.pop(), Global)
            stack.append(_described(called, arguments))
        case "BUILD":  # notes that state dicts carry about the versions of their modules
            _expect(stack.pop(), dict)
            _expect(stack[-1], dict)
        case _:
            raise Refused(f"the step {name}")


def _global(module: str, name: str) -> Global:
    if (module, name) not in ALLOWED:
        raise Refused(shown(f"{module}.{name}"))
    return Global(module, name)


def _storage(description: tuple[Any, ...]) -> Storage:
    """What stands for a storage: ('storage', its type, its key, its device, its count, None in the older form)."""
    if len(description) not in (5, 6) or description[0] != "storage" or description[5:] not in ((), (None,)):
        raise Refused("a kind of storage of its own")
    kind, key, count = description[1], description[2], description[4]
    dtype = DTYPES.get(_expect(kind, Global).name)
    if dtype is None or _whole(count) < 0:
        raise Refused("a kind of storage of its own")
    return Storage(_expect(key, str), dtype, count)


def _described(called: Global, arguments: tuple[Any, ...]) -> Any:
    """What a call would have made, for the few calls that make tensors and the containers around them."""
    if called.name == "OrderedDict" and not arguments:
        return {}
    if called.name == "Size" and len(arguments) == 1:
        return tuple(_whole(size) for size in arguments[0])
    if called.name == "_rebuild_parameter" and len(arguments) == 3:
        return _expect(arguments[0], View)
    if called.name in TENSORS and 4 <= len(arguments) <= 7:
        storage, offset, shape, stride = arguments[:4]
        shape, stride = (tuple(_whole(n) for n in _expect(sizes, tuple)) for sizes in (shape, stride))
        return View(_expect(storage, Storage), _whole(offset), shape, stride)
    raise Refused(f"a call of {called.module}.{called.name} in a form of its own")


def _key(value: Any) -> str | int:
    """A key of a dictionary: a name, or the number of a parameter in an optimizer's state."""
    return value if type(value) is int else _expect(value, str)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise Damaged("a size that is no number")
    return value


def _expect(value: Any, kind: type[Any]) -> Any:
    """The value, if it is of the kind that belongs there."""
    if type(value) is not kind:
        raise Damaged(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value
