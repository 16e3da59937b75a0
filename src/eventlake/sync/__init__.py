"""The sync, one file per step: plan, read, dedupe, settle, write, publish. `run.py` is the flow."""
