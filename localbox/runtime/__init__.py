"""Sandboxes for boxes: one small interface, two ways to keep it."""
