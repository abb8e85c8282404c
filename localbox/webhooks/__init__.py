"""Telling other servers what became of a box: signed HTTP requests, repeated until they are answered."""
