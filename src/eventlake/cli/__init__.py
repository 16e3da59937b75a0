"""The command line: parse, call, print. No logic; nothing heavy is imported before its use."""
