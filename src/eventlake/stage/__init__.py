"""Where raw events wait for the next sync: keys, sources, inbox, decoding and sending."""
