"""`/metrics`: what the ledger says now, what every process of this machine has counted, and the requests."""
