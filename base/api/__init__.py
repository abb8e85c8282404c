"""What every app's API shares: one shape of errors, lists and bodies."""
