"""The native engine: packed weights, compiled kernels, the same answers faster."""
