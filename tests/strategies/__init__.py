"""Hypothesis strategies for streams of events as they come: small alphabets, many conflicts."""
