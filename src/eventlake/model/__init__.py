"""The nouns of an event lake and their laws.

Pure values: nothing here reads, writes or knows the time.
"""
