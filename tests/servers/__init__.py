"""Real servers and credentials for tests; nothing here stands in for a client of ours."""
