"""Catalogs: where query engines learn of tables.

The ledger stays the truth; a catalog is published to.
"""
