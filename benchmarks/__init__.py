"""Measurements of what the product promises, each against a baseline taken in the same run: `bin/bench NAME`."""
