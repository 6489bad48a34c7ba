"""Formal proofs of the hardware (docs/proof.md): `python -m formal`."""
