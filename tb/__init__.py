"""Benches of the hardware: cocotb tests, stream drivers, scoreboard, bulk harness."""
