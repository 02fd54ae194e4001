// SPDX-License-Identifier: Apache-2.0
// A program whose threads are known to wake each other, or not to, for the tests of `affinityctl sharers`.
//
// usage: sharing_threads [--pause US] [--work US] [--for SECONDS] [--count FILE] [--alike] KIND...
//
// KIND is one of futex, pipe, socket, counter, event, tcp: a pair of threads "KIND-a" and "KIND-b" that hand
// a turn to each other; independent: 16 threads that have nothing to do with each other; comers: threads that
// come and end all the time, in pairs; crowd:N: N threads in pairs. --pause: a pair rests so many
// microseconds after each round. --work: who has the turn takes so much of a CPU first. --count: a file whose
// first eight bytes are how many rounds all pairs have had. --alike: all threads have one name. Prints
// "ready". Without a time it runs until its standard input ends.
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace {

using std::chrono::microseconds;

std::atomic<long> own_rounds = 0;
std::atomic<long>* rounds = &own_rounds; ///< of all pairs
std::atomic<int> running = 0;            ///< threads
microseconds pause_time{0}, work_time{0};
bool are_alike = false;

void rename_thread(const std::string& name) {
    ::pthread_setname_np(::pthread_self(), are_alike ? "alike" : name.substr(0, 15).c_str());
}

void rest() {
    if (pause_time.count() > 0) std::this_thread::sleep_for(pause_time);
}

microseconds cpu_time() {
    timespec used{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return microseconds(used.tv_sec * 1'000'000 + used.tv_nsec / 1000);
}

void work() {
    if (work_time.count() == 0) return;
    const auto end = cpu_time() + work_time;
    while (cpu_time() < end) {
    }
}

/// Two places between which a turn goes to and fro. Each end sleeps until it has the turn.
class Court {
  public:
    virtual ~Court() = default;
    virtual void give(int to) = 0;  ///< the turn; 0 or 1
    virtual void await(int at) = 0; ///< until it has the turn
};

class FutexCourt : public Court {
  public:
    void give(int to) override {
        turn_ = to;
        ::syscall(SYS_futex, &turn_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    }
    void await(int at) override {
        while (turn_ != at)
            ::syscall(SYS_futex, &turn_, FUTEX_WAIT_PRIVATE, 1 - at, nullptr, nullptr, 0);
    }

  private:
    std::atomic<int> turn_ = 0;
};

/// A counter that both add to, each when it is even or odd.
class CounterCourt : public Court {
  public:
    void give(int /*to*/) override {
        {
            const std::lock_guard lock(mutex_);
            ++count_;
        }
        changed_.notify_one();
    }
    void await(int at) override {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return count_ % 2 == at; });
    }

  private:
    std::mutex mutex_;
    std::condition_variable changed_;
    long count_ = 0;
};

/// Bytes over descriptors: what one end writes the other one reads.
class DescriptorCourt : public Court {
  public:
    explicit DescriptorCourt(const std::string& kind) {
        if (kind == "pipe") make_pipes();
        if (kind == "socket" && ::socketpair(AF_UNIX, SOCK_STREAM, 0, write_.data()) == 0) read_ = write_;
        if (kind == "event")
            for (int end : {0, 1})
                write_[end] = read_[1 - end] = ::eventfd(0, 0);
        if (kind == "tcp") connect_both();
        bytes_ = kind == "event" ? 8 : 1;
        held_ = 0;
    }
    void give(int to) override {
        const std::uint64_t one = 1;
        if (::write(write_[1 - to], &one, bytes_) != static_cast<ssize_t>(bytes_)) std::perror("write");
    }
    void await(int at) override {
        // The first turn is that of 0, and no thread gives it.
        if (at == 0 && held_++ == 0) return;
        std::uint64_t got = 0;
        if (::read(read_[at], &got, bytes_) <= 0) std::perror("read");
    }

  private:
    void make_pipes() {
        for (int end : {0, 1}) {
            std::array<int, 2> ends{};
            if (::pipe(ends.data()) != 0) std::perror("pipe");
            write_[end] = ends[1];
            read_[1 - end] = ends[0];
        }
    }
    void connect_both() {
        const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        auto* generic = reinterpret_cast<sockaddr*>(&address);
        if (::bind(listener, generic, size) != 0 || ::listen(listener, 1) != 0) std::perror("listen");
        ::getsockname(listener, generic, &size);
        read_[0] = ::socket(AF_INET, SOCK_STREAM, 0);
        if (::connect(read_[0], generic, size) != 0) std::perror("connect");
        read_[1] = ::accept(listener, nullptr, nullptr);
        const int yes = 1;
        for (const int end : read_)
            ::setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        write_ = read_;
        ::close(listener);
    }
    std::array<int, 2> write_{-1, -1}, read_{-1, -1};
    std::size_t bytes_ = 1;
    long held_ = 0;
};

std::shared_ptr<Court> make_court(const std::string& kind) {
    if (kind == "futex") return std::make_shared<FutexCourt>();
    if (kind == "counter") return std::make_shared<CounterCourt>();
    return std::make_shared<DescriptorCourt>(kind);
}

/// An end of a pair; end 0 counts and rests. The end goes on for so many rounds, 0: without end.
void play(const std::shared_ptr<Court>& court, int end, const std::string& name, long most) {
    rename_thread(name);
    ++running;
    for (long round = 0; most == 0 || round < most; ++round) {
        court->await(end);
        work();
        if (end == 0) {
            ++*rounds;
            rest();
        }
        court->give(1 - end);
    }
}

std::vector<std::thread> start_pair(const std::string& kind, const std::string& name, long most = 0) {
    auto court = make_court(kind);
    std::vector<std::thread> threads;
    for (const int end : {0, 1})
        threads.emplace_back(play, court, end, name + (end == 0 ? "-a" : "-b"), most);
    return threads;
}

void be_busy() {
    volatile unsigned long value = 0;
    while (true) {
        for (int i = 0; i < 20000; ++i)
            value = value * 31 + 7;
        std::this_thread::sleep_for(microseconds(700)); // sixteen are not to take the whole machine
    }
}

void be_asleep() {
    while (true)
        ::poll(nullptr, 0, 2);
}

/// A file that is gone with this program.
int make_file() {
    std::string path = "/tmp/sharing-threads-XXXXXX";
    const int file = ::mkstemp(path.data());
    ::unlink(path.c_str());
    return file;
}

/// Two threads of four write into one file; all write back and read.
void use_file(int number) {
    static const std::array<int, 2> files{make_file(), make_file()};
    const int file = files[static_cast<std::size_t>(number / 2)];
    std::array<char, 4096> data{};
    for (int round = 0;; ++round) {
        const off_t place = (round * 2 + number % 2) % 64 * static_cast<off_t>(data.size());
        if (::pwrite(file, data.data(), data.size(), place) < 0 ||
            ::pread(file, data.data(), data.size(), 0) < 0)
            break;
        if (round % 16 == 0) ::fdatasync(file);
        std::this_thread::sleep_for(microseconds(500));
    }
}

/// A timerfd, or a timer that signals this thread.
void use_timer(int number) {
    const itimerspec each{{0, 1'000'000}, {0, 1'000'000}};
    const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    timer_t by_signal{};
    if (number % 2 == 0) {
        ::timerfd_settime(timer, 0, &each, nullptr);
    } else {
        sigevent event{};
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGUSR1;
        event._sigev_un._tid = ::gettid();
        if (::timer_create(CLOCK_MONOTONIC, &event, &by_signal) == 0)
            ::timer_settime(by_signal, 0, &each, nullptr);
    }
    std::uint64_t times = 0;
    while (true) {
        if (number % 2 == 0 && ::read(timer, &times, sizeof(times)) < 0) break;
        if (number % 2 == 1) ::pause();
    }
}

std::vector<std::thread> start_independent() {
    ::signal(SIGUSR1, [](int) {});
    std::vector<std::thread> threads;
    const auto start = [&](const std::string& name, const std::function<void(int)>& work) {
        for (int number = 0; number < 4; ++number)
            threads.emplace_back([=] {
                rename_thread(name + std::to_string(number));
                ++running;
                work(number);
            });
    };
    start("busy-", [](int) { be_busy(); });
    start("asleep-", [](int) { be_asleep(); });
    start("files-", use_file);
    start("timer-", use_timer);
    return threads;
}

/// Pairs that live for some milliseconds, one after the other.
std::thread start_comers() {
    return std::thread([] {
        rename_thread("comers");
        ++running;
        while (true)
            for (auto& thread : start_pair("futex", "comer", 20))
                thread.join();
    });
}

void start(const std::string& kind, std::vector<std::thread>& threads) {
    const auto add = [&](std::vector<std::thread> more) {
        for (auto& thread : more)
            threads.push_back(std::move(thread));
    };
    if (kind == "independent") return add(start_independent());
    if (kind == "comers") return threads.push_back(start_comers());
    if (!kind.starts_with("crowd:")) return add(start_pair(kind, kind));
    for (int pair = 0; pair < std::atoi(kind.c_str() + 6) / 2; ++pair)
        add(start_pair("futex", "c" + std::to_string(pair)));
}

void count_in(const char* path) {
    const int file = ::open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, sizeof(*rounds)) != 0) return std::perror(path);
    void* memory = ::mmap(nullptr, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) rounds = static_cast<std::atomic<long>*>(memory);
}

void await_end(double seconds) {
    if (seconds > 0) {
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        return;
    }
    char byte = 0;
    while (::read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

} // namespace

int main(int argc, char** argv) {
    double seconds = 0;
    std::vector<std::thread> threads;
    std::vector<std::string> kinds;
    for (int at = 1; at < argc; ++at) {
        const std::string word = argv[at];
        if (word == "--alike")
            are_alike = true;
        else if (word == "--pause" && at + 1 < argc)
            pause_time = microseconds(std::atoi(argv[++at]));
        else if (word == "--work" && at + 1 < argc)
            work_time = microseconds(std::atoi(argv[++at]));
        else if (word == "--for" && at + 1 < argc)
            seconds = std::atof(argv[++at]);
        else if (word == "--count" && at + 1 < argc)
            count_in(argv[++at]);
        else
            kinds.push_back(word);
    }
    for (const auto& kind : kinds)
        start(kind, threads);
    while (running < static_cast<int>(threads.size()))
        std::this_thread::sleep_for(microseconds(1000));
    std::puts("ready");
    std::fflush(stdout);
    await_end(seconds);
    std::_Exit(0); // others are in the middle of their waits
}
