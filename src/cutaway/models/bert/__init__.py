"""BERT and DistilBERT, in one folder: encoders that read a text in both directions at once."""
