"""Functional coverage: what of the format the data of `make sim` contains (docs/proof.md)."""
