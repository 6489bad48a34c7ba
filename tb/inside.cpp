// Entry of a Verilator simulation that is loaded into a Python process (tb/inside.py).
#include <cstdio>
#include <unistd.h>

int planezip_main(int argc, char** argv);  // cocotb's main, renamed on the command line

extern "C" void planezip_run(int argc, char** argv) {
    const int code = planezip_main(argc, argv);
    std::fflush(nullptr);
    _exit(code);  // cocotb has finalised the interpreter: there is no way back into it
}
