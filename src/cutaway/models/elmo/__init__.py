"""ELMo: two recurrent language models, one in each direction, whose layers are mixed into one vector a word."""
