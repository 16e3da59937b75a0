"""What is done.

A numbered series of create-only records per source, the only truth about a lake's tables.
"""
