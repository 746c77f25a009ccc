"""Static word vectors, one for each word whatever stands around it: read, written, learned, and their neighbours."""

from cutaway.words.formats import read_vectors, write_vectors
from cutaway.words.skipgram import learn_vectors
from cutaway.words.vectors import WordVectors

__all__ = ["WordVectors", "learn_vectors", "read_vectors", "write_vectors"]
