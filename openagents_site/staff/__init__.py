"""The staff site: how it looks, what it leads to, and who may do what on it."""
