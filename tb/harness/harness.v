// Runs files of tensors through a lane and compares everything that it gives.
//
// The lane is the module `adapter` (written by build.py), with four valid/ready streams:
// descriptor and in (driven here), out and report (taken and compared here).
// Files stand in the working directory, one record after the other, the most significant
// byte first: descriptors.bin, in.bin, out.bin and reports.bin. A record of in.bin and
// out.bin ends in a byte of marks: bit 0 begins a block, bit 1 ends a tensor.
// The files results.txt, in_stamps.txt and out_stamps.txt (a cycle and its marks a line) are
// written; lines of results.txt that begin with "wrong" are mismatches.
//
// Plusargs: seed, stall_in and stall_out (0 never, 1 half of the time, 2 bursts,
// 3 three out of four, 4 cyclic), reset_at (cycle; 0: never), timeout (cycles).

`timescale 1ns / 1ns

// Pause of one stream: a xorshift generator of its own, noise for idle payloads.
module pauses (
    input wire clk,
    input wire [2:0] mode,
    input wire [31:0] seed,
    input wire restart,
    output reg pause,
    output reg [31:0] noise
);
  reg [3:0] left;
  reg [1:0] turn;
  reg [31:0] next;
  always @(posedge clk) begin
    next = noise ^ (noise << 13);
    next = next ^ (next >> 17);
    next = next ^ (next << 5);
    noise <= restart ? seed | 32'd1 : next;
    turn <= restart || turn == 2 ? 2'd0 : turn + 2'd1;
    left <= restart ? 4'd0 : left != 0 ? left - 4'd1 : next[3:0] == 0 ? next[7:4] : 4'd0;
    case (mode)
      0: pause <= 0;
      1: pause <= next[8];
      2: pause <= left != 0;
      3: pause <= next[9:8] != 0;
      default: pause <= turn != 0;
    endcase
  end
endmodule

// Offers the records of a file; payload is noise (X where there is X) while valid is low.
module file_source #(
    parameter FILE = "",
    parameter BITS = 8,
    parameter MARKS = 0,
    parameter SALT = 0
) (
    input wire clk,
    input wire [2:0] mode,
    input wire [31:0] seed,
    input wire restart,
    output reg valid,
    output reg [BITS-1:0] payload,
    input wire ready,
    output reg [7:0] marks,
    output reg done
);
  localparam BYTES = (BITS + 7) / 8;
  reg [8*(BYTES+MARKS)-1:0] word;
  integer file, count;
  wire pause;
  wire [31:0] noise;
  pauses pauses (clk, mode, seed + SALT, restart, pause, noise);
  initial begin
    file = $fopen(FILE, "rb");
    valid = 0;
    done = 0;
  end
  always @(posedge clk)
    if (restart) begin
      count = $rewind(file);
      count = $fread(word, file);
      valid <= 0;
      done <= count != BYTES + MARKS;
    end else if (!valid || ready) begin
      valid <= !done && !pause;
      if (!done && !pause) begin
        payload <= word[8*MARKS+:BITS];
        marks <= MARKS != 0 ? word[7:0] : 8'd0;
        count = $fread(word, file);
        done <= count != BYTES + MARKS;
      end else begin
`ifdef VERILATOR
        payload <= {(BITS + 31) / 32{noise}};
`else
        payload <= {BITS{1'bx}};
`endif
      end
    end
endmodule

// Takes a stream and compares each transfer with the next record of a file.
module file_check #(
    parameter FILE = "",
    parameter NAME = "",
    parameter BITS = 8,
    parameter MARKS = 0,
    parameter SALT = 0
) (
    input wire clk,
    input wire [2:0] mode,
    input wire [31:0] seed,
    input wire restart,
    input wire valid,
    input wire [BITS-1:0] payload,
    output reg ready,
    output reg [7:0] marks,
    output reg done,
    output reg [31:0] taken,
    output reg [31:0] wrong
);
  localparam BYTES = (BITS + 7) / 8;
  reg [8*(BYTES+MARKS)-1:0] word;
  reg [BITS-1:0] held;
  reg waiting;
  integer file, count;
  wire pause;
  wire [31:0] noise;
  pauses pauses (clk, mode, seed + SALT, restart, pause, noise);
  initial begin
    file = $fopen(FILE, "rb");
    ready = 0;
    done = 0;
    taken = 0;
    wrong = 0;
  end
  always @(posedge clk)
    if (restart) begin
      count = $rewind(file);
      count = $fread(word, file);
      ready <= 0;
      waiting <= 0;
      done <= count != BYTES + MARKS;
      marks <= word[7:0];
      taken <= 0;
    end else begin
      ready <= !pause;
      waiting <= valid && !ready;
      held <= payload;
      if (waiting && (valid !== 1 || payload !== held)) begin
        if (wrong < 50) $fdisplay(harness.results, "wrong %s unstable %0d", NAME, taken);
        wrong <= wrong + 1;
      end else if (valid !== 0 && valid !== 1) begin
        if (wrong < 50) $fdisplay(harness.results, "wrong %s x %0d", NAME, taken);
        wrong <= wrong + 1;
      end else if (valid && ready) begin
        if (done) begin
          if (wrong < 50) $fdisplay(harness.results, "wrong %s extra %0d %h", NAME, taken, payload);
          wrong <= wrong + 1;
        end else if (payload !== word[8*MARKS+:BITS]) begin
          if (wrong < 50)
            $fdisplay(harness.results, "wrong %s value %0d %h %h", NAME, taken,
                      word[8*MARKS+:BITS], payload);
          wrong <= wrong + 1;
        end
        taken <= taken + 1;
        count = $fread(word, file);
        marks <= word[7:0];
        done <= count != BYTES + MARKS;
      end
    end
endmodule

module harness (
    input wire clk,
    output reg done
);
  reg rst = 1;

  integer results, in_stamps, out_stamps;
  reg [31:0] seed, stall_in, stall_out, reset_at, timeout;
  reg [31:0] cycle = 0, idle = 0, first_in = 0, first_out = 0, resetting = 3;
  reg seen_in = 0, seen_out = 0;
  initial begin
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("stall_in=%d", stall_in)) stall_in = 0;
    if (!$value$plusargs("stall_out=%d", stall_out)) stall_out = 0;
    if (!$value$plusargs("reset_at=%d", reset_at)) reset_at = 0;
    if (!$value$plusargs("timeout=%d", timeout)) timeout = 20000;
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
          || out_wrong + reports_wrong > 1000)) begin
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
