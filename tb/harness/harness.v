// Runs files of tensors through a lane and compares everything that it gives.
//
// The lane is the module `adapter` (written by bulk.py), with four valid/ready streams:
// descriptor and in (driven here), out and report (taken and compared here).
// Files stand in the working directory, one record after the other, the most significant
// byte first: descriptors.bin, in.bin, out.bin and reports.bin. A record of in.bin and
// out.bin ends in a byte of marks: bit 0 begins a block, bit 1 ends a tensor.
// The files results.txt, in_stamps.txt and out_stamps.txt (a cycle and its marks a line) are
// written; lines of results.txt that begin with "wrong" are mismatches.
//
// Plusargs: seed, stall_in and stall_out (patterns: files.v), reset_at (cycle; 0: never),
// timeout (cycles), most_wrong (mismatches after which the run goes on; 1,000).

`timescale 1ns / 1ns

module harness (
    input wire clk,
    output reg done
);
  reg rst = 1;

  integer results, in_stamps, out_stamps;
  reg [31:0] seed, stall_in, stall_out, reset_at, timeout, most_wrong;
  reg [31:0] cycle = 0, idle = 0, first_in = 0, first_out = 0, resetting = 3;
  reg seen_in = 0, seen_out = 0;
  initial begin
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("stall_in=%d", stall_in)) stall_in = 0;
    if (!$value$plusargs("stall_out=%d", stall_out)) stall_out = 0;
    if (!$value$plusargs("reset_at=%d", reset_at)) reset_at = 0;
    if (!$value$plusargs("timeout=%d", timeout)) timeout = 20000;
    if (!$value$plusargs("most_wrong=%d", most_wrong)) most_wrong = 1000;
    done = 0;
    results = $fopen("results.txt", "w");
    in_stamps = $fopen("in_stamps.txt", "w");
    out_stamps = $fopen("out_stamps.txt", "w");
  end

  wire descriptor_valid, descriptor_ready, in_valid, in_ready;
  wire out_valid, out_ready, report_valid, report_ready;
  wire [`DESCRIPTOR_BITS-1:0] descriptor_payload;
  wire [`IN_BITS-1:0] in_payload;
  wire [`OUT_BITS-1:0] out_payload;
  wire [`REPORT_BITS-1:0] report_payload;
  wire [7:0] in_marks, out_marks, descriptor_marks, report_marks;
  wire descriptors_done, in_done, out_done, reports_done;
  wire [31:0] out_taken, reports_taken, out_wrong, reports_wrong;

  file_source #(.FILE("descriptors.bin"), .BITS(`DESCRIPTOR_BITS), .SALT(1)) descriptors (
      clk, stall_in[2:0], seed, rst, descriptor_valid, descriptor_payload, descriptor_ready,
      descriptor_marks, descriptors_done);
  file_source #(.FILE("in.bin"), .BITS(`IN_BITS), .MARKS(1), .SALT(1000)) in (
      clk, stall_in[2:0], seed, rst, in_valid, in_payload, in_ready, in_marks, in_done);
  file_check #(.FILE("out.bin"), .NAME("out"), .BITS(`OUT_BITS), .MARKS(1), .SALT(2000)) out (
      clk, stall_out[2:0], seed, rst, out_valid, out_payload, out_ready, out_marks, out_done,
      out_taken, out_wrong);
  file_check #(.FILE("reports.bin"), .NAME("report"), .BITS(`REPORT_BITS), .SALT(3000)) reports (
      clk, stall_out[2:0], seed, rst, report_valid, report_payload, report_ready,
      report_marks, reports_done, reports_taken, reports_wrong);

  adapter adapter (
      clk, rst, descriptor_valid, descriptor_ready, descriptor_payload,
      in_valid, in_ready, in_payload, out_valid, out_ready, out_payload,
      report_valid, report_ready, report_payload);

  wire moved = descriptor_valid && descriptor_ready || in_valid && in_ready
      || out_valid && out_ready || report_valid && report_ready;
  wire finished = descriptors_done && in_done && out_done && reports_done
      && !descriptor_valid && !in_valid;

  always @(posedge clk) if (!done) begin
    cycle <= cycle + 1;
    idle <= rst || moved ? 0 : idle + 1;
    if (resetting != 0) resetting <= resetting - 1;
    rst <= resetting > 1;
    if (!rst && reset_at != 0 && cycle == reset_at) begin
      resetting <= 3;
      rst <= 1;
      seen_in <= 0;
      seen_out <= 0;
    end
    if (!rst) begin
      if (in_valid && in_ready) begin
        if (!seen_in) first_in <= cycle;
        seen_in <= 1;
        if (in_marks != 0) $fdisplay(in_stamps, "%0d %0d", cycle, in_marks);
      end
      if (out_valid) begin
        if (!seen_out) first_out <= cycle;
        seen_out <= 1;
        if (out_ready && !out_done && out_marks != 0)
          $fdisplay(out_stamps, "%0d %0d", cycle, out_marks);
      end
      if (cycle > reset_at && (idle > timeout || finished && idle > 200
          || out_wrong + reports_wrong > most_wrong)) begin
        $fdisplay(results, "cycles %0d", cycle);
        $fdisplay(results, "first_in %0d", first_in);
        $fdisplay(results, "first_out %0d", first_out);
        $fdisplay(results, "out_taken %0d", out_taken);
        $fdisplay(results, "reports_taken %0d", reports_taken);
        $fdisplay(results, "out_wrong %0d", out_wrong);
        $fdisplay(results, "reports_wrong %0d", reports_wrong);
        $fdisplay(results, "finished %0d", finished);
        $fdisplay(results, "descriptors_done %0d", descriptors_done);
        $fdisplay(results, "in_done %0d", in_done);
        $fclose(results);
        $fclose(in_stamps);
        $fclose(out_stamps);
        done <= 1;
      end
    end
  end
endmodule
