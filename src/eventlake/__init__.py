"""Eventlake: customer events in, typed and deduplicated Parquet tables out."""

__version__ = "0.1.0"
