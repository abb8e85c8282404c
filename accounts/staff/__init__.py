"""What staff see of users and tokens, and what they may do to them."""
