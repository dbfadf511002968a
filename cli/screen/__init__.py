"""How a run and a tree look: in a terminal, in a pipe, and as JSON."""
