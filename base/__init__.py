"""Small named parts below every app: one concept a file, no tables, nothing that knows what a box is."""
