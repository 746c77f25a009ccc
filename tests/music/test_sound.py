"""Listening through numbers: the right pitch, a blow that dies away, a damper, nothing clipped; and the picture."""

from __future__ import annotations

import io
import wave
import zlib

import numpy as np
import pytest

from cutaway.errors import CutawayError
from cutaway.music import Performance
from cutaway.music.roll import KEYS, ROW, SECOND, draw_roll, png_bytes
from cutaway.music.sound import LOUDEST, RATE, frequency, synthesize, wav_bytes


def played(pitch: int, seconds: float = 1.0, velocity: int = 80) -> np.ndarray:
    return synthesize(Performance.of([0.0], [seconds], [pitch], [velocity])).mean(axis=1)


@pytest.mark.parametrize("pitch", [33, 60, 69, 84, 100])
def test_a_note_has_the_pitch_it_should(pitch):
    sound = played(pitch)[:RATE]
    spectrum = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), 8 * len(sound)))
    hertz = np.fft.rfftfreq(8 * len(sound), 1 / RATE)
    near = (hertz > frequency(pitch) * 0.75) & (hertz < frequency(pitch) * 1.4)
    found = hertz[near][spectrum[near].argmax()]
    assert abs(1200 * np.log2(found / frequency(pitch))) < 10  # cents
    second = (hertz > frequency(pitch) * 1.9) & (hertz < frequency(pitch) * 2.1)
    assert 0.03 < spectrum[second].max() / spectrum[near].max() < 1.5  # it has partials


def test_it_is_struck_dies_away_and_is_damped():
    sound = played(60, seconds=2.0)
    rms = [float(np.sqrt((sound[at : at + RATE // 10] ** 2).mean())) for at in range(0, len(sound), RATE // 10)]
    assert rms[0] > 1.3 * rms[10] > 1.3 * 1.1 * rms[19]
    assert rms[22] < 0.02 * rms[19] and rms[-1] < 1e-4


def test_harder_is_louder_and_brighter():
    both = synthesize(Performance.of([0.0, 3.0], [1.0, 4.0], [60, 60], [30, 120])).mean(axis=1)
    soft, hard = both[: 2 * RATE], both[3 * RATE : 5 * RATE]

    def brightness(sound: np.ndarray) -> float:
        spectrum = np.abs(np.fft.rfft(sound[:RATE]))
        return float((spectrum * np.arange(len(spectrum))).sum() / spectrum.sum())

    assert (hard**2).mean() > 10 * (soft**2).mean()
    assert brightness(hard) > 1.2 * brightness(soft)


def test_a_cluster_is_not_clipped_and_the_file_is_what_others_read():
    many = Performance.of(np.zeros(40), np.ones(40), np.arange(40, 80), np.full(40, 127))
    sound = synthesize(many)
    assert np.abs(sound).max() == pytest.approx(LOUDEST, abs=1e-3)
    with wave.open(io.BytesIO(wav_bytes(sound))) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, RATE)
        back = np.frombuffer(file.readframes(file.getnframes()), "<i2").reshape(-1, 2)
    assert np.abs(back / 32767 - sound).max() < 1e-4
    assert abs(float(sound.mean())) < 1e-3


def test_low_notes_sound_on_the_left():
    low, high = (synthesize(Performance.of([0.0], [1.0], [pitch], [80])) for pitch in (30, 100))
    assert (low[:, 0] ** 2).sum() > (low[:, 1] ** 2).sum()
    assert (high[:, 1] ** 2).sum() > (high[:, 0] ** 2).sum()


def test_the_roll_has_every_note_at_its_place():
    picture = draw_roll(Performance.of([0.0, 1.0], [0.5, 2.0], [60, 72], [20, 120]))
    high = 74
    for start, end, pitch in ((0.0, 0.5, 60), (1.0, 2.0, 72)):
        row = (high - pitch) * ROW + ROW // 2
        left, right = KEYS + int(start * SECOND), KEYS + int(end * SECOND)
        inside, after = picture[row, left + 1 : right].astype(int), picture[row, right + 2].astype(int)
        assert (inside == inside[0]).all() and abs(inside[0] - after).sum() > 100
    soft, hard = picture[(high - 60) * ROW + 3, KEYS + 5], picture[(high - 72) * ROW + 3, KEYS + SECOND + 5]
    assert hard.astype(int).sum() < soft.astype(int).sum()
    with pytest.raises(CutawayError, match="no notes"):
        draw_roll(Performance.of([], [], [], []))


def test_a_png_is_one_that_zlib_and_its_checksums_agree_with():
    picture = draw_roll(Performance.of([0.0], [0.5], [60], [64]))
    data = png_bytes(picture)
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(data):
        size, kind = int.from_bytes(data[at : at + 4]), data[at + 4 : at + 8]
        chunks[kind] = data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + chunks[kind]) == int.from_bytes(data[at + 8 + size : at + 12 + size])
        at += 12 + size
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(picture.shape[0], -1)
    assert (rows[:, 0] == 0).all() and np.array_equal(rows[:, 1:].reshape(picture.shape), picture)
