"""Piano performances as tokens: MIDI files in and out, and the events a model reads and writes."""

from cutaway.music.events import Events
from cutaway.music.midi import read_midi, write_midi
from cutaway.music.performance import Performance

__all__ = ["Events", "Performance", "read_midi", "write_midi"]
