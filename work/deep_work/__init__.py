"""How a deep-work job is done: a model is asked, its tool calls are carried out one at a time, and its last word is the
report. What to do next is decided by pure functions from the committed rows alone, so that any worker can go on."""
