"""The piano roll as a picture: time from left to right, pitch from bottom to top, louder is darker."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from cutaway.errors import CutawayError
from cutaway.music.performance import Array, Performance
from cutaway.music.sound import write_file

ROW = 6
"""Pixels to a semitone."""
SECOND = 40
"""Pixels to a second, of a performance that is not too long for it."""
WIDEST = 20_000
KEYS = 24
"""Pixels of the keyboard at the left."""
PAPER, STRIPE, LINE, OCTAVE = (252, 251, 248), (243, 242, 238), (226, 224, 218), (190, 187, 178)
BLACK_KEY, WHITE_KEY = (40, 40, 44), (255, 255, 255)
SOFT, HARD = np.array((158, 190, 222.0)), np.array((18, 44, 96.0))
BLACK = (1, 3, 6, 8, 10)
"""The pitch classes of the black keys."""


def draw_roll(performance: Performance) -> Array:
    """The picture, uint8 [row, column, colour]."""
    if not len(performance):
        raise CutawayError("There are no notes to draw.")
    low, high = int(performance.pitches.min()) - 2, int(performance.pitches.max()) + 2
    scale = min(SECOND, (WIDEST - KEYS) / max(1e-9, performance.seconds))
    width = KEYS + int(performance.seconds * scale) + 8
    picture = np.empty(((high - low + 1) * ROW, width, 3), np.uint8)
    picture[:] = PAPER
    for pitch in range(low, high + 1):
        rows = slice((high - pitch) * ROW, (high - pitch + 1) * ROW)
        black = pitch % 12 in BLACK
        picture[rows, KEYS:] = STRIPE if black else PAPER
        picture[rows, :KEYS] = WHITE_KEY
        if black:
            picture[rows, : KEYS * 2 // 3] = BLACK_KEY
        if pitch % 12 in (0, 5):  # below C and F there is no black key
            picture[rows.stop - 1] = OCTAVE if pitch % 12 == 0 else LINE
    for second in range(int(performance.seconds) + 1):
        picture[:, KEYS + int(second * scale)] = OCTAVE if second % 10 == 0 else LINE
    for start, end, pitch, velocity in zip(
        performance.starts.tolist(), performance.ends.tolist(), performance.pitches.tolist(),
        performance.velocities.tolist(), strict=True,
    ):  # fmt: skip
        top = (high - pitch) * ROW
        left = KEYS + int(start * scale)
        right = max(left + 2, KEYS + int(end * scale))
        blow = velocity / 127
        colour = (1 - blow) * SOFT + blow * HARD
        picture[top + 1 : top + ROW - 1, left:right] = colour
        picture[top + 1 : top + ROW - 1, left] = colour * 0.5  # where the key goes down
    picture[:, KEYS - 1] = OCTAVE
    return picture


def png_bytes(picture: Array) -> bytes:
    """A PNG file of a picture with three colours a pixel."""
    height, width, _ = picture.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)  # 0: no filter
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def write_png(performance: Performance, path: str | Path) -> None:
    """Draw the performance into a PNG file."""
    write_file(png_bytes(draw_roll(performance)), Path(path))
