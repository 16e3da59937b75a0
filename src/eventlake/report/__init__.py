"""Outcomes of syncs as reports: what console, alerts and the command line read about a run."""
