// Runs of a harness without Python: a line of stdin is a run, a line of stdout its end.
//
// A line has the run's folder, then plusargs, with tabs between. Each run is a process of its own, so that one
// that aborts (logic that does not settle) or reaches its limit of processor time ends alone.
// Answers: "ended CODE" or "died SIGNAL". A build with coverage leaves, at the end, what all
// runs together have hit: coverage.dat in the folder of the last one.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "Vharness.h"
#include "verilated.h"

#if VM_COVERAGE
#include "Vharness___024root.h"
#include "Vharness__Syms.h"

using Counters = decltype(Vharness__Syms::__Vcoverage);
static Counters& counters(Vharness& top) { return top.rootp->vlSymsp->__Vcoverage; }

static void leave_counters(Vharness& top) {
    std::ofstream file("counters.bin", std::ios::binary);
    file.write(reinterpret_cast<const char*>(counters(top)), sizeof(Counters));
}

// A run goes on from the counters of those before it, so that its own are those of all.
static void take_counters(Vharness& top, const std::string& folder) {
    static Counters all;
    const std::string path = folder + "/counters.bin";
    std::ifstream file(path, std::ios::binary);
    if (!file.read(reinterpret_cast<char*>(all), sizeof all)) return;
    std::memcpy(counters(top), all, sizeof all);
    std::remove(path.c_str());  // should the next run die before it leaves its own
}
#endif

static int run(VerilatedContext& context, Vharness& top, const std::vector<std::string>& words,
               unsigned seconds) {
    if (chdir(words[0].c_str()) || !std::freopen("log.txt", "w", stdout)) return 2;
    if (dup2(fileno(stdout), 2) < 0) return 2;
    const rlimit limit{seconds, seconds};
    setrlimit(RLIMIT_CPU, &limit);
    std::vector<const char*> arguments;
    for (const std::string& word : words) arguments.push_back(word.c_str());
    context.commandArgs(static_cast<int>(arguments.size()), arguments.data());
    while (!top.done && !context.gotFinish()) {
        top.clk = !top.clk;
        top.eval();
        context.timeInc(1);
    }
    top.final();
#if VM_COVERAGE
    leave_counters(top);
#endif
    std::fflush(nullptr);
    return 0;
}

int main(int, char** argv) {
    const unsigned seconds = static_cast<unsigned>(std::atoi(argv[1]));
    const auto context = std::make_unique<VerilatedContext>();
    const auto top = std::make_unique<Vharness>(context.get());  // of which each run has a copy
    std::string folder;
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream stream(line);
        std::vector<std::string> words;
        for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
        folder = words[0];
        const pid_t child = fork();
        if (!child) _exit(run(*context, *top, words, seconds));
        int status = 0;
        waitpid(child, &status, 0);
#if VM_COVERAGE
        take_counters(*top, folder);
#endif
        if (WIFEXITED(status))
            std::cout << "ended " << WEXITSTATUS(status) << std::endl;
        else
            std::cout << "died " << WTERMSIG(status) << std::endl;
    }
#if VM_COVERAGE
    context->coveragep()->write((folder + "/coverage.dat").c_str());
#endif
    return 0;
}
