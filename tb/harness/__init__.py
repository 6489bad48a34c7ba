"""Bulk harness: files of tensors through a lane, every output beat compared in Verilog."""
