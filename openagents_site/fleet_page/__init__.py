"""`/fleet/`: an owner's boxes, what runs on them and what they cost. See docs/reference/fleet.md."""
