"""From scores to texts: sampling, sequences, beams."""
