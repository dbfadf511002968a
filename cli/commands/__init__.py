"""One module per command of `lintello`; each is imported when its command is called."""
