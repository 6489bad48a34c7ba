"""Coverage: functional, of the format, and of the lanes' Verilog (docs/proof.md)."""
