"""How times are written on pages: so that they sort, and to the second."""
