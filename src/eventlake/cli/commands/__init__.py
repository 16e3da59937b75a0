"""One module per command; `eventlake.cli.main.COMMANDS` names them and imports them when called."""
