// Smoke test of the exported files, in plain Verilog: a start for a test bench of your own.
//
//   python -m planezip.hdl.export build/verilog        (make verilog)
//   cd build/verilog
//   iverilog -g2005 -o smoke.vvp -c planezip.f ../../tb/verilog/smoke.v && vvp smoke.vvp
//
// Two tensors go through the compressor, what comes out through the decompressor, and must be the
// same again. Then a tensor without tlast, and a stream with a bit flipped. Registers:
// docs/registers.md. The last line is PASS or FAIL.

`timescale 1ns / 1ps

module smoke;
  parameter LANES = 2;
  localparam RAW = 32 * LANES;    // bytes of a beat of the raw ports
  localparam WIRE = 64 * LANES;   // and of the compressed ones
  localparam COMPRESS = 12'h100, DECOMPRESS = 12'h200;
  localparam MODE_STREAM = 0, BFLOAT16 = 0, FLOAT32 = 2;

  reg clk = 0, aresetn = 0;
  always #5 clk = !clk;
  integer failures = 0;

  // AXI4-Stream: raw tensors in, streams out; streams in, raw tensors out.
  reg [8*RAW-1:0] raw_tdata = 0;
  reg [RAW-1:0] raw_tkeep = 0;
  reg raw_tlast = 0, raw_tvalid = 0;
  wire raw_tready;
  wire [8*WIRE-1:0] out_tdata;
  wire [WIRE-1:0] out_tkeep;
  wire out_tlast, out_tvalid;
  reg [8*WIRE-1:0] wire_tdata = 0;
  reg [WIRE-1:0] wire_tkeep = 0;
  reg wire_tlast = 0, wire_tvalid = 0;
  wire wire_tready;
  wire [8*RAW-1:0] back_tdata;
  wire [RAW-1:0] back_tkeep;
  wire back_tlast, back_tvalid;

  // AXI4-Lite.
  reg [11:0] awaddr = 0, araddr = 0;
  reg [31:0] wdata = 0;
  reg awvalid = 0, wvalid = 0, arvalid = 0;
  wire awready, wready, bvalid, arready, rvalid, irq;
  wire [1:0] bresp, rresp;
  wire [31:0] rdata;

  planezip_axi dut (
      .aclk(clk), .aresetn(aresetn), .irq(irq),
      .s_axis_raw_tdata(raw_tdata), .s_axis_raw_tkeep(raw_tkeep), .s_axis_raw_tlast(raw_tlast),
      .s_axis_raw_tvalid(raw_tvalid), .s_axis_raw_tready(raw_tready),
      .m_axis_wire_tdata(out_tdata), .m_axis_wire_tkeep(out_tkeep),
      .m_axis_wire_tlast(out_tlast), .m_axis_wire_tvalid(out_tvalid), .m_axis_wire_tready(1'b1),
      .s_axis_wire_tdata(wire_tdata), .s_axis_wire_tkeep(wire_tkeep),
      .s_axis_wire_tlast(wire_tlast), .s_axis_wire_tvalid(wire_tvalid),
      .s_axis_wire_tready(wire_tready),
      .m_axis_raw_tdata(back_tdata), .m_axis_raw_tkeep(back_tkeep),
      .m_axis_raw_tlast(back_tlast), .m_axis_raw_tvalid(back_tvalid), .m_axis_raw_tready(1'b1),
      .s_axil_awaddr(awaddr), .s_axil_awvalid(awvalid), .s_axil_awready(awready),
      .s_axil_wdata(wdata), .s_axil_wstrb(4'hf), .s_axil_wvalid(wvalid),
      .s_axil_wready(wready), .s_axil_bresp(bresp), .s_axil_bvalid(bvalid),
      .s_axil_bready(1'b1), .s_axil_araddr(araddr), .s_axil_arvalid(arvalid),
      .s_axil_arready(arready), .s_axil_rdata(rdata), .s_axil_rresp(rresp),
      .s_axil_rvalid(rvalid), .s_axil_rready(1'b1));

  task check(input ok, input [8*40-1:0] what);
    if (!ok) begin
      failures = failures + 1;
      $display("wrong: %0s, in cycle %0d", what, $time / 10);
      if (failures == 10) begin
        $display("FAIL");
        $finish;
      end
    end
  endtask

  // Inputs change at the falling edge or right behind the rising one; a transfer is what is seen
  // at the rising edge, as ready may depend on valid.
  reg taken;
  task write(input [11:0] address, input [31:0] value, input [1:0] response);
    begin
      @(negedge clk) awaddr = address;
      wdata = value;
      awvalid = 1;
      wvalid = 1;
      taken = 0;
      while (!taken) @(posedge clk) taken = awready && wready;
      #1 awvalid = 0;
      wvalid = 0;
      while (!bvalid) @(negedge clk);
      check(bresp == response, "response to a write");
    end
  endtask

  task read(input [11:0] address, output [31:0] value);
    begin
      @(negedge clk) araddr = address;
      arvalid = 1;
      taken = 0;
      while (!taken) @(posedge clk) taken = arready;
      #1 arvalid = 0;
      while (!rvalid) @(negedge clk);
      value = rdata;
      check(rresp == 0, "response to a read");
    end
  endtask

  task submit(input [11:0] base, input [3:0] dtype, input [31:0] raw, input [31:0] stream,
              input [15:0] tag);
    begin
      write(base + 12'h00, raw, 0);
      write(base + 12'h08, stream, 0);
      write(base + 12'h10, {tag, 8'd0, dtype, 4'd0} | MODE_STREAM, 0);
    end
  endtask

  // Waits for the completion and shows its fields.
  reg [31:0] status, done, wire_bytes, chunk, block;
  task complete(input [11:0] base, input [15:0] tag, input [3:0] error, input framing);
    begin
      status = 0;
      while (!status[1]) read(base + 12'h14, status);
      read(base + 12'h20, done);
      read(base + 12'h24, block);
      read(base + 12'h28, chunk);
      read(base + 12'h38, wire_bytes);
      check(done[31] && done[15:0] == tag, "tag of a completion");
      check(done[19:16] == error, "error of a completion");
      check(done[20] == framing, "framing of a completion");
      write(base + 12'h1c, 0, 0);
    end
  endtask

  // Bytes of a tensor, and what has come out.
  localparam MOST = 16384;
  reg [7:0] tensor[0:MOST-1], stream[0:MOST-1];
  integer streamed = 0, returned = 0, stream_lasts = 0, return_lasts = 0;
  integer i, j, k, n;
  always @(posedge clk) begin
    if (out_tvalid) begin
      for (i = 0; i < WIRE; i = i + 1)
        if (out_tkeep[i]) begin
          stream[streamed] = out_tdata[8*i+:8];
          streamed = streamed + 1;
        end
      stream_lasts = stream_lasts + out_tlast;
    end
    if (back_tvalid) begin
      for (j = 0; j < RAW; j = j + 1)
        if (back_tkeep[j]) begin
          check(back_tdata[8*j+:8] === tensor[returned] || lenient, "byte that came back");
          returned = returned + 1;
        end
      return_lasts = return_lasts + back_tlast;
    end
  end
  reg lenient = 0;  // zeros take the place of what cannot be decoded

  task send_raw(input integer bytes, input with_last);
    for (k = 0; k < bytes; k = k + RAW) begin
      @(negedge clk) raw_tvalid = 1;
      raw_tkeep = {RAW{1'b1}} >> (bytes - k < RAW ? RAW - (bytes - k) : 0);
      raw_tlast = with_last && k + RAW >= bytes;
      for (n = 0; n < RAW; n = n + 1) raw_tdata[8*n+:8] = tensor[k+n];
      taken = 0;
      while (!taken) @(posedge clk) taken = raw_tready;
      #1 raw_tvalid = 0;
    end
  endtask

  task send_stream(input integer bytes);
    for (k = 0; k < bytes; k = k + WIRE) begin
      @(negedge clk) wire_tvalid = 1;
      wire_tkeep = {WIRE{1'b1}} >> (bytes - k < WIRE ? WIRE - (bytes - k) : 0);
      wire_tlast = k + WIRE >= bytes;
      for (n = 0; n < WIRE; n = n + 1) wire_tdata[8*n+:8] = stream[k+n];
      taken = 0;
      while (!taken) @(posedge clk) taken = wire_tready;
      #1 wire_tvalid = 0;
    end
  endtask

  // Compress the first bytes of ``tensor``, and bring them back.
  task there_and_back(input integer bytes, input [3:0] dtype, input [15:0] tag, input with_last);
    begin
      streamed = 0;
      returned = 0;
      submit(COMPRESS, dtype, bytes, 0, tag);
      send_raw(bytes, with_last);
      complete(COMPRESS, tag, 0, !with_last);
      check(wire_bytes == streamed, "bytes of the stream");
      $display("%0d bytes became %0d", bytes, streamed);
      submit(DECOMPRESS, dtype, bytes, streamed, tag);
      send_stream(streamed);
      complete(DECOMPRESS, tag, 0, 0);
      check(returned == bytes, "bytes that came back");
    end
  endtask

  reg [31:0] value;
  initial begin
    for (k = 0; k < MOST; k = k + 1) begin  // slowly rising 32-bit numbers, then noise
      value = 32'h3f80_0000 + 3 * (k / 4);
      tensor[k] = k < 3000 ? value[8*(k%4)+:8] : $random;
      stream[k] = 0;
    end
    repeat (4) @(negedge clk);
    aresetn = 1;
    read(12'h000, value);
    check(value == 32'h505a_4950, "ID");
    read(12'h008, value);
    check(value[7:0] == LANES, "number of lanes");
    write(12'h000, 0, 2);  // it cannot be written: SLVERR
    write(12'h00c, 1, 0);
    there_and_back(5000, FLOAT32, 16'h1234, 1);
    check(stream_lasts == 1 && return_lasts == 1, "tlast");
    there_and_back(1, BFLOAT16, 16'h0001, 1);
    there_and_back(300, FLOAT32, 16'h0002, 0);
    // A header that promises more than the chunk has: error 1, chunk 0, and zeros.
    stream[1] = 8'hff;
    lenient = 1;
    returned = 0;
    submit(DECOMPRESS, FLOAT32, 300, streamed, 3);
    send_stream(streamed);
    complete(DECOMPRESS, 3, 1, 0);
    check(returned == 300 && chunk == 0 && block == 0, "zeros in place of a broken stream");
    read(DECOMPRESS + 12'hc4, value);
    check(value == 1, "counter of errors");
    $display("%0s", failures == 0 ? "PASS" : "FAIL");
    $finish;
  end

  initial begin
    #2000000 $display("FAIL: nothing happens any more");
    $finish;
  end
endmodule
