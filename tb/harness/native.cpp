// Runs of a harness without Python: a line of stdin is a run, a line of stdout its end.
//
// A line has the run's folder, then plusargs, with tabs between. Each run is a process of its own, so that one
// that aborts (logic that does not settle) or reaches its limit of processor time ends alone.
// Answers: "ended CODE" or "died SIGNAL".
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "Vharness.h"
#include "verilated.h"

static int run(const std::vector<std::string>& words, unsigned seconds) {
    if (chdir(words[0].c_str()) || !std::freopen("log.txt", "w", stdout)) return 2;
    if (dup2(fileno(stdout), 2) < 0) return 2;
    const rlimit limit{seconds, seconds};
    setrlimit(RLIMIT_CPU, &limit);
    std::vector<const char*> arguments;
    for (const std::string& word : words) arguments.push_back(word.c_str());
    const auto context = std::make_unique<VerilatedContext>();
    context->commandArgs(static_cast<int>(arguments.size()), arguments.data());
    const auto top = std::make_unique<Vharness>(context.get());
    while (!top->done && !context->gotFinish()) {
        top->clk = !top->clk;
        top->eval();
        context->timeInc(1);
    }
    top->final();
#if VM_COVERAGE
    context->coveragep()->write("coverage.dat");
#endif
    std::fflush(nullptr);
    return 0;
}

int main(int, char** argv) {
    const unsigned seconds = static_cast<unsigned>(std::atoi(argv[1]));
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream stream(line);
        std::vector<std::string> words;
        for (std::string word; std::getline(stream, word, '\t');) words.push_back(word);
        const pid_t child = fork();
        if (!child) _exit(run(words, seconds));
        int status = 0;
        waitpid(child, &status, 0);
        if (WIFEXITED(status))
            std::cout << "ended " << WEXITSTATUS(status) << std::endl;
        else
            std::cout << "died " << WTERMSIG(status) << std::endl;
    }
    return 0;
}
