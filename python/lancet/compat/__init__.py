"""Calls of other tools, on lancet's engine."""
