"""What staff see of boxes, and what they may do to them."""
