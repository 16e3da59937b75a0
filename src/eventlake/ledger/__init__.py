"""What is done: a numbered series of create-only records per source, the only truth about a lake's tables."""
