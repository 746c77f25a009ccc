"""The machines of the articles, one folder each."""
