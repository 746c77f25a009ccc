"""Piano performances as tokens: MIDI files in and out, and the events a model reads and writes."""

from cutaway.music.events import Events
from cutaway.music.folder import Folder, read_folder
from cutaway.music.midi import read_midi, write_midi
from cutaway.music.performance import Performance

__all__ = ["Events", "Folder", "Performance", "read_folder", "read_midi", "write_midi"]
