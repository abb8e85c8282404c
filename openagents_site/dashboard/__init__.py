"""What staff see first: what goes on now, what it costs, what is to be looked after. See docs/reference/staff.md."""
