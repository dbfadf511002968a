"""Embedded PostgreSQL and Valkey, and the supervision of a whole stack on this machine."""
