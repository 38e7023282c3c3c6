/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>

#include "make-program.h"
#include "test.h"
#include "util/clock.h"

/* Debug information from a server of debuginfod, for which a small HTTP server on the loopback
 * interface stands in. Its cache lies in the folder of the test. */

static const char source_c[] = "__attribute__((noinline)) int alpha(int n) { return n * 3; }\n"
                               "int main(int argc, char **argv) { return alpha(argc); }\n";

static const char source_server[] =
    "import http.server, sys, time\n"
    "slow = len(sys.argv) > 1\n"
    "class Handler(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        if slow:\n"
    "            time.sleep(100)\n"
    "        try:\n"
    "            data = open('served/' + self.path.replace('/', '_'), 'rb').read()\n"
    "        except OSError:\n"
    "            return self.send_error(404)\n"
    "        self.send_response(200)\n"
    "        self.send_header('Content-Length', str(len(data)))\n"
    "        self.end_headers()\n"
    "        self.wfile.write(data)\n"
    "    def log_message(self, *args):\n"
    "        pass\n"
    "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n"
    "sys.stdout.write(str(server.server_port) + chr(10))\n"
    "sys.stdout.flush()\n"
    "server.serve_forever()\n";

typedef struct Served {
    pid_t pid;
    FrameMapping mapping;
    uint64_t alpha;
} Served;

static void stop(Served *served) {
    if (served->pid > 0) {
        (void)kill(served->pid, SIGKILL);
        (void)waitpid(served->pid, NULL, 0);
    }
}

/* A server with the debug file of a program that was stripped, and with the program if it is gone.
 */
static bool serve(Served *served, bool is_slow, bool is_gone) {
    char id[64] = "", url[64], port[16] = "";
    int pipes[2];

    made_write("source.c", source_c);
    made_write("server.py", source_server);
    if (!made_run("rm -rf served client && mkdir served client && rm -f program && "
                  "gcc -O1 -g -Wl,--build-id -o program source.c"))
        return false;
    served->mapping = made_mapping("program");
    served->alpha = made_offset("program", "alpha");
    for (size_t i = 0; i < served->mapping.build_id_size; i++)
        snprintf(id + 2 * i, 3, "%02x", served->mapping.build_id[i]);
    if (!made_run("objcopy --only-keep-debug program served/_buildid_%s_debuginfo && "
                  "strip program",
                  id) ||
        (is_gone && !made_run("mv program served/_buildid_%s_executable", id)) || pipe(pipes) < 0)
        return false;
    served->pid = fork();
    if (served->pid == 0) {
        (void)dup2(pipes[1], STDOUT_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        if (chdir(made_in()) == 0)
            execlp("python3", "python3", "server.py", is_slow ? "slow" : NULL, NULL);
        _exit(127);
    }
    (void)close(pipes[1]);
    if (read(pipes[0], port, sizeof(port) - 1) <= 0)
        return false;
    (void)close(pipes[0]);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d/", atoi(port));
    (void)setenv("DEBUGINFOD_URLS", url, 1);
    (void)setenv("DEBUGINFOD_CACHE_PATH", made_path("client"), 1);
    return true;
}

static bool has_library(void) {
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library)
        (void)dlclose(library);
    return library && made_has("python3");
}

TEST(server_has_the_symbols_of_a_stripped_program) {
    SymbolOptions options = {.local_files = true, .debuginfod = true, .debuginfod_ms = 30000};
    _cleanup_(stop) Served served = {};
    FrameName name;

    if (!has_library())
        TEST_SKIP("libdebuginfod1 is not installed");
    CHECK(serve(&served, false, false));
    CHECK_STREQ(made_look_up(&served.mapping, served.alpha, &options, &name), "alpha");
    options.debuginfod = false;
    CHECK(strstr(made_look_up(&served.mapping, served.alpha, &options, &name), "program+0x"));
}

TEST(server_has_a_program_that_is_gone) {
    SymbolOptions options = {.local_files = true, .debuginfod = true, .debuginfod_ms = 30000};
    _cleanup_(stop) Served served = {};
    FrameName name;

    if (!has_library())
        TEST_SKIP("libdebuginfod1 is not installed");
    CHECK(serve(&served, false, true));
    CHECK_STREQ(made_look_up(&served.mapping, served.alpha, &options, &name), "alpha");
    CHECK_EQ(name.start, served.alpha);
}

static void count(const char *what, void *arg) {
    ++*(unsigned *)arg;
}

TEST(slow_server_is_left_and_progress_is_shown) {
    unsigned calls = 0;
    SymbolOptions options = {.local_files = true,
                             .debuginfod = true,
                             .debuginfod_ms = 1500,
                             .progress = count,
                             .arg = &calls};
    _cleanup_(stop) Served served = {};
    uint64_t began_ns = clock_monotonic_ns();
    FrameName name;

    if (!has_library())
        TEST_SKIP("libdebuginfod1 is not installed");
    CHECK(serve(&served, true, false));
    CHECK(strstr(made_look_up(&served.mapping, served.alpha, &options, &name), "program+0x"));
    CHECK(calls > 0);
    /* The server would have answered after 100 s. */
    CHECK(clock_monotonic_ns() - began_ns < 90 * NS_PER_SECOND);
}

TEST_MAIN()
