"""A second, slow reading of the design: what a sync must give, one row at a time.

Shares no code with the product and imports nothing but the standard library, so that a
misreading of the design has to be made twice to go unseen.
"""
