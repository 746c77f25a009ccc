"""Recurrent sequence to sequence: an encoder and a decoder of GRUs or LSTMs, without attention and with it."""
