"""The Transformer: an encoder and a decoder, and the attention between them. Marian's models are of its kind."""
