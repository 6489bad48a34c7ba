// Parts of the harnesses: sources and checks of valid/ready streams, from files of records.
//
// A record is as many bytes as the payload needs, the most significant one first, and, where
// MARKS is 1, a byte of marks: bit 0 begins a block, bit 1 ends a tensor. Mismatches become
// lines of harness.results that begin with "wrong".
//
// Pause patterns: 0 never, 1 half of the time, 2 bursts, 3 three out of four, 4 cyclic,
// 7 always.

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
      7: pause <= 1;
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
        if (wrong < 1000) $fdisplay(harness.results, "wrong %s unstable %0d", NAME, taken);
        wrong <= wrong + 1;
      end else if (valid !== 0 && valid !== 1) begin
        if (wrong < 1000) $fdisplay(harness.results, "wrong %s x %0d", NAME, taken);
        wrong <= wrong + 1;
      end else if (valid && ready) begin
        if (done) begin
          if (wrong < 1000) $fdisplay(harness.results, "wrong %s extra %0d %h", NAME, taken, payload);
          wrong <= wrong + 1;
        end else if (payload !== word[8*MARKS+:BITS]) begin
          if (wrong < 1000)
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
