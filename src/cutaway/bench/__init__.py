"""How fast this machine is, beside others."""
