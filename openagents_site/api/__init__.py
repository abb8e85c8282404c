"""The API as a whole: its addresses, and what spans apps."""
