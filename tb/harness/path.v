// The whole path: tensors through a compressing engine, over a link, through a decompressing one.
//
// The engine is the exported module `planezip_engine`. Files (records: files.v): descriptors.bin
// and in.bin go to the compressor, back_descriptors.bin to the decompressor; out.bin is what
// must come back, completions.bin and back_completions.bin what both must tell, cycles left
// out. With the plusarg link=0 link.bin goes to the decompressor, not what the compressor
// writes, and wire.bin is what that must be.
//
// Written: results.txt; in_stamps.txt and out_stamps.txt, a cycle and its marks a line;
// cycles.txt, the direction and the cycles of each completion; trace.txt, valid and ready of the
// eight ports and both activities in each of the first cycles.
//
// Plusargs: seed; patterns (files.v) stall_in (raw tensors and completions), stall_out (raw
// tensors, and wire.bin), stall_link; reset_at (cycle of a reset, after which all is sent again;
// 0: never); timeout, trace (cycles).

`timescale 1ns / 1ns

// Beats on their way: a queue that takes and gives with pauses.
module link #(
    parameter BITS = 8,
    parameter DEPTH = 64
) (
    input wire clk,
    input wire rst,
    input wire [2:0] mode,
    input wire [31:0] seed,
    input wire in_valid,
    output wire in_ready,
    input wire [BITS-1:0] in_payload,
    output reg out_valid,
    input wire out_ready,
    output reg [BITS-1:0] out_payload
);
  reg [BITS-1:0] beats[0:DEPTH-1];
  reg [15:0] written, read;
  wire pause_in, pause_out;
  wire [31:0] noise_in, noise_out;
  pauses pauses_in (clk, mode, seed + 32'd5000, rst, pause_in, noise_in);
  pauses pauses_out (clk, mode, seed + 32'd6000, rst, pause_out, noise_out);
  wire [15:0] level = written - read;
  assign in_ready = level != DEPTH && !pause_in;
  always @(posedge clk)
    if (rst) begin
      written <= 0;
      read <= 0;
      out_valid <= 0;
    end else begin
      if (in_valid && in_ready) begin
        beats[written % DEPTH] <= in_payload;
        written <= written + 1;
      end
      if (!out_valid || out_ready) begin
        out_valid <= level != 0 && !pause_out;
        out_payload <= beats[read % DEPTH];
        if (level != 0 && !pause_out) read <= read + 1;
      end
    end
endmodule

module harness (
    input wire clk,
    output reg done
);
  reg rst = 1;
  integer results, in_stamps, out_stamps, cycles, trace, k;
  reg [31:0] seed, stall_in, stall_out, stall_link, linked, reset_at, timeout, traced;
  reg [31:0] cycle = 0, idle = 0, resetting = 4, first_in = 0, first_out = 0;
  reg [31:0] first_wire = 0, last_in = 0, last_out = 0;
  reg seen_in = 0, seen_wire = 0, seen_out = 0;
  reg [31:0] in_activity[0:7], out_activity[0:7], in_held[0:7], out_held[0:7];
  initial begin
    if (!$value$plusargs("seed=%d", seed)) seed = 1;
    if (!$value$plusargs("stall_in=%d", stall_in)) stall_in = 0;
    if (!$value$plusargs("stall_out=%d", stall_out)) stall_out = 0;
    if (!$value$plusargs("stall_link=%d", stall_link)) stall_link = 0;
    if (!$value$plusargs("link=%d", linked)) linked = 1;
    if (!$value$plusargs("reset_at=%d", reset_at)) reset_at = 0;
    if (!$value$plusargs("timeout=%d", timeout)) timeout = 20000;
    if (!$value$plusargs("trace=%d", traced)) traced = 0;
    trace = $fopen("trace.txt", "w");
    done = 0;
    results = $fopen("results.txt", "w");
    in_stamps = $fopen("in_stamps.txt", "w");
    out_stamps = $fopen("out_stamps.txt", "w");
    cycles = $fopen("cycles.txt", "w");
    for (k = 0; k < 8; k = k + 1) begin
      in_activity[k] = 0;
      out_activity[k] = 0;
      in_held[k] = 0;
      out_held[k] = 0;
    end
  end

  wire d_valid, d_ready, b_valid, b_ready, in_valid, in_ready, out_valid, out_ready;
  wire wire_valid, wire_ready, c_valid, c_ready, e_valid, e_ready;
  wire link_ready, check_ready, file_valid, queue_valid, back_ready;
  wire [`DESCRIPTOR_BITS-1:0] d_payload, b_payload;
  wire [`RAW_BITS-1:0] in_payload, out_payload;
  wire [`WIRE_BITS-1:0] wire_payload, file_payload, queue_payload;
  wire [`COMPLETION_BITS-1:0] c_payload, e_payload;
  wire [7:0] marks_d, marks_b, in_marks, out_marks, marks_wire, marks_file, marks_c, marks_e;
  wire d_done, b_done, in_done, out_done, wire_done, file_done, c_done, e_done;
  wire [31:0] out_taken, out_wrong, wire_taken, wire_wrong, c_taken, c_wrong, e_taken, e_wrong;
  wire [2:0] in_does, out_does, unused_in, unused_out;

  file_source #(.FILE("descriptors.bin"), .BITS(`DESCRIPTOR_BITS), .SALT(1)) descriptors (
      clk, stall_in[2:0], seed, rst, d_valid, d_payload, d_ready, marks_d, d_done);
  file_source #(.FILE("back_descriptors.bin"), .BITS(`DESCRIPTOR_BITS), .SALT(2)) back (
      clk, stall_link[2:0], seed, rst, b_valid, b_payload, b_ready, marks_b, b_done);
  file_source #(.FILE("in.bin"), .BITS(`RAW_BITS), .MARKS(1), .SALT(1000)) in (
      clk, stall_in[2:0], seed, rst, in_valid, in_payload, in_ready, in_marks, in_done);
  file_check #(.FILE("out.bin"), .NAME("out"), .BITS(`RAW_BITS), .MARKS(1), .SALT(2000)) out (
      clk, stall_out[2:0], seed, rst, out_valid, out_payload, out_ready, out_marks, out_done,
      out_taken, out_wrong);
  file_check #(.FILE("completions.bin"), .NAME("completion"), .BITS(`COMPLETION_BITS),
               .SALT(3000)) completions (
      clk, stall_in[2:0], seed, rst, c_valid, c_payload & `COMPLETION_MASK, c_ready, marks_c,
      c_done, c_taken, c_wrong);
  file_check #(.FILE("back_completions.bin"), .NAME("back_completion"),
               .BITS(`COMPLETION_BITS), .SALT(4000)) back_completions (
      clk, stall_in[2:0], seed, rst, e_valid, e_payload & `COMPLETION_MASK, e_ready, marks_e,
      e_done, e_taken, e_wrong);

  // Over the link, or wire.bin and link.bin in its place.
  wire joined = linked != 0;
  link #(.BITS(`WIRE_BITS)) between (
      clk, rst, stall_link[2:0], seed, wire_valid && joined, link_ready, wire_payload,
      queue_valid, back_ready, queue_payload);
  file_check #(.FILE("wire.bin"), .NAME("wire"), .BITS(`WIRE_BITS), .MARKS(1), .SALT(7000)) to (
      clk, stall_out[2:0], seed, rst, wire_valid && !joined, wire_payload, check_ready,
      marks_wire, wire_done, wire_taken, wire_wrong);
  file_source #(.FILE("link.bin"), .BITS(`WIRE_BITS), .MARKS(1), .SALT(8000)) from (
      clk, stall_link[2:0], seed, rst, file_valid, file_payload, back_ready && !joined,
      marks_file, file_done);
  assign wire_ready = joined ? link_ready : check_ready;

  planezip_engine engine (
      .clk(clk), .rst(rst),
      .compress__descriptor__valid(d_valid), .compress__descriptor__ready(d_ready),
      .compress__descriptor__payload(d_payload),
      .compress__raw__valid(in_valid), .compress__raw__ready(in_ready),
      .compress__raw__payload(in_payload),
      .compress__wire__valid(wire_valid), .compress__wire__ready(wire_ready),
      .compress__wire__payload(wire_payload),
      .compress__completion__valid(c_valid), .compress__completion__ready(c_ready),
      .compress__completion__payload(c_payload),
      .compress__raw_activity(in_does), .compress__wire_activity(unused_in),
      .decompress__descriptor__valid(b_valid), .decompress__descriptor__ready(b_ready),
      .decompress__descriptor__payload(b_payload),
      .decompress__wire__valid(joined ? queue_valid : file_valid),
      .decompress__wire__ready(back_ready),
      .decompress__wire__payload(joined ? queue_payload : file_payload),
      .decompress__raw__valid(out_valid), .decompress__raw__ready(out_ready),
      .decompress__raw__payload(out_payload),
      .decompress__completion__valid(e_valid), .decompress__completion__ready(e_ready),
      .decompress__completion__payload(e_payload),
      .decompress__raw_activity(out_does), .decompress__wire_activity(unused_out));

  wire moved = d_valid && d_ready || b_valid && b_ready || in_valid && in_ready
      || out_valid && out_ready || wire_valid && wire_ready || c_valid && c_ready
      || e_valid && e_ready || (joined ? queue_valid : file_valid) && back_ready;
  wire finished = d_done && b_done && in_done && out_done && c_done && e_done && !d_valid
      && !b_valid && !in_valid && (joined || wire_done && file_done && !file_valid);
  wire [31:0] wrong = out_wrong + wire_wrong + c_wrong + e_wrong;

  always @(posedge clk) if (!done) begin
    cycle <= cycle + 1;
    if (resetting != 0) resetting <= resetting - 1;
    rst <= resetting > 1;
    idle <= rst || moved ? 0 : idle + 1;
    if (cycle < traced)
      $fdisplay(trace, "%b%b %b%b %b%b %b%b %b%b %b%b %b%b %b%b %0d %0d", d_valid, d_ready, in_valid,
                in_ready, wire_valid, wire_ready, c_valid, c_ready, b_valid, b_ready,
                joined ? queue_valid : file_valid, back_ready, out_valid, out_ready, e_valid,
                e_ready, in_does, out_does);
    if (!rst && reset_at != 0 && cycle == reset_at) begin
      resetting <= 4;
      rst <= 1;
      seen_in <= 0;
      seen_wire <= 0;
      seen_out <= 0;
      for (k = 0; k < 8; k = k + 1) begin
        in_activity[k] <= 0;
        out_activity[k] <= 0;
        in_held[k] <= 0;
        out_held[k] <= 0;
      end
    end else if (!rst) begin
      // Activities count from the first beat of a port to its last one.
      if (in_valid && in_ready) begin
        if (!seen_in) first_in <= cycle;
        seen_in <= 1;
        last_in <= cycle;
        if (in_marks != 0) $fdisplay(in_stamps, "%0d %0d", cycle, in_marks);
      end
      if (wire_valid && !seen_wire) begin
        seen_wire <= 1;
        first_wire <= cycle;
      end
      if (out_valid && out_ready) begin
        if (!seen_out) first_out <= cycle;
        seen_out <= 1;
        last_out <= cycle;
        if (!out_done && out_marks != 0) $fdisplay(out_stamps, "%0d %0d", cycle, out_marks);
      end
      for (k = 0; k < 8; k = k + 1) begin
        if (in_valid && in_ready) in_activity[k] <= in_activity[k] + in_held[k] + (in_does == k);
        if (out_valid && out_ready)
          out_activity[k] <= out_activity[k] + out_held[k] + (out_does == k);
        in_held[k] <= in_valid && in_ready || !seen_in ? 0 : in_held[k] + (in_does == k);
        out_held[k] <= out_valid && out_ready || !seen_out ? 0 : out_held[k] + (out_does == k);
      end
      if (c_valid && c_ready) $fdisplay(cycles, "0 %0d", c_payload[`CYCLES_AT+:40]);
      if (e_valid && e_ready) $fdisplay(cycles, "1 %0d", e_payload[`CYCLES_AT+:40]);
      if (cycle > reset_at
          && (idle > timeout || finished && idle > 200 || wrong > 1000)) begin
        $fdisplay(results, "cycles %0d", cycle);
        $fdisplay(results, "first_in %0d", first_in);
        $fdisplay(results, "last_in %0d", last_in);
        $fdisplay(results, "first_wire %0d", first_wire);
        $fdisplay(results, "first_out %0d", first_out);
        $fdisplay(results, "last_out %0d", last_out);
        $fdisplay(results, "wire_taken %0d", wire_taken);
        $fdisplay(results, "out_taken %0d", out_taken);
        $fdisplay(results, "completions_taken %0d", c_taken);
        $fdisplay(results, "back_completions_taken %0d", e_taken);
        $fdisplay(results, "wrong_values %0d", wrong);
        $fdisplay(results, "finished %0d", finished);
        for (k = 0; k < 8; k = k + 1) begin
          $fdisplay(results, "in_activity_%0d %0d", k, in_activity[k]);
          $fdisplay(results, "out_activity_%0d %0d", k, out_activity[k]);
        end
        $fclose(results);
        $fclose(in_stamps);
        $fclose(out_stamps);
        $fclose(cycles);
        $fclose(trace);
        done <= 1;
      end
    end
  end
endmodule
