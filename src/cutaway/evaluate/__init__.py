"""How good a model is: perplexity, LAMBADA, BLEU, ROUGE and accuracy, each number with how it was got."""
