"""GPT-2: its shape, its forward pass, its tensors and the map of its intermediates."""
