"""The HTTP face of the provider."""
