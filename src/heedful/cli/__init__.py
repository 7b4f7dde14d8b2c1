"""The command line: one short file a command; everything they do is in `heedful.runs`."""
