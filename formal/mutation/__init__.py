"""Mutants of the lanes' RTL against the stimuli of the benches (docs/proof.md)."""
