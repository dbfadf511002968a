"""Quota: who may think, and how many at once."""
