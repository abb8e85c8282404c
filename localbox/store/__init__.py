"""The provider's own durable records, in one SQLite file."""
