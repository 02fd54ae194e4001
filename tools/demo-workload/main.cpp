// SPDX-License-Identifier: Apache-2.0
// A program with named threads for the demonstration and the tests. The program waits, and meanwhile renames
// itself or executes another if its options say so.
//
//   demo-workload [--threads NAME,NAME,...] [--rename-after MS NEW] [--exec-after MS PROGRAM ARG...]
//   [--seconds N]
//
// The program ends after N seconds (default 60, at most 600).
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <unistd.h>

namespace {

using std::chrono::milliseconds;

struct Options {
    std::vector<std::string> threads;
    milliseconds rename_after{0};
    std::string new_name;
    milliseconds exec_after{0};
    std::vector<char*> program;
    int seconds = 60;
};

int number(std::string_view text, int most) {
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value < 0 || value > most ? most : value;
}

std::vector<std::string> names(std::string_view list) {
    std::vector<std::string> result;
    while (!list.empty()) {
        const auto comma = list.find(',');
        result.emplace_back(list.substr(0, comma));
        list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
    }
    return result;
}

bool parse(int argc, char** argv, Options& options) {
    for (int i = 1; i < argc; ++i) {
        const std::string_view option = argv[i];
        const int left = argc - i - 1;
        if (option == "--threads" && left >= 1) {
            options.threads = names(argv[++i]);
        } else if (option == "--seconds" && left >= 1) {
            options.seconds = number(argv[++i], 600);
        } else if (option == "--rename-after" && left >= 2) {
            options.rename_after = milliseconds(number(argv[++i], 600000));
            options.new_name = argv[++i];
        } else if (option == "--exec-after" && left >= 2) {
            options.exec_after = milliseconds(number(argv[++i], 600000));
            options.program.assign(argv + i + 1, argv + argc);
            options.program.push_back(nullptr);
            return true;
        } else {
            return false;
        }
    }
    return true;
}

void name_self(const std::string& name) { ::prctl(PR_SET_NAME, name.c_str()); }

} // namespace

int main(int argc, char** argv) {
    Options options;
    if (!parse(argc, argv, options)) {
        std::fprintf(stderr,
                     "usage: %s [--threads A,B] [--rename-after MS NAME] [--seconds N] [--exec-after MS "
                     "PROGRAM ARG...]\n",
                     argv[0]);
        return 2;
    }
    ::alarm(static_cast<unsigned>(options.seconds)); // ends the whole process, whatever its threads do
    std::vector<std::jthread> threads;
    for (const auto& name : options.threads)
        threads.emplace_back([name] {
            name_self(name);
            ::pause();
        });
    if (!options.new_name.empty()) {
        std::this_thread::sleep_for(options.rename_after);
        name_self(options.new_name);
    }
    if (!options.program.empty()) {
        std::this_thread::sleep_for(options.exec_after);
        ::execvp(options.program.front(), options.program.data());
        std::perror("exec");
        return 127;
    }
    ::pause();
    return 0;
}
