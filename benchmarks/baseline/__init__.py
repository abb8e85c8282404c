"""What the measurements are compared with: plain ways of doing the same work."""
