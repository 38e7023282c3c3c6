/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/*
 * A busy function under a known number of others, on a stack of each kind, without frame pointers.
 *
 * Usage: stacks thread      on a thread
 *        stacks signal      in a signal handler
 *        stacks altstack    in a signal handler on a stack of its own, which interrupts
 * touch_page() stacks coroutine   on the stack of a coroutine stacks rewrite FILE OFFSET SIZE on a
 * thread, while another one overwrites these bytes of a file It runs until it is killed.
 */

enum { DEPTH = 10, TURN = 20000, PAGE = 1 << 16, STACK_BYTES = 1 << 18 };

static volatile uint64_t sink;
static volatile char *page;

__attribute__((noinline)) static uint64_t stacks_leaf(uint64_t x) {
    for (unsigned i = 0; i < TURN; i++)
        x = x * 6364136223846793005ULL + 1442695040888963407ULL;
    return x;
}

__attribute__((noinline)) static uint64_t stacks_descend(unsigned depth, uint64_t x) {
    return (depth > 0 ? stacks_descend(depth - 1, x * 3) : stacks_leaf(x)) + 1;
}

static void say_ready(void) {
    printf("ready\n");
    (void)fflush(stdout);
}

static void *run_thread(void *userdata) {
    for (;;)
        sink = stacks_descend(DEPTH, sink);
    return userdata;
}

static void on_fault(int signal) {
    (void)signal;
    for (unsigned i = 0; i < 200; i++)
        sink = stacks_descend(DEPTH, sink);
    (void)mprotect((void *)page, PAGE, PROT_READ | PROT_WRITE);
}

/* Writes to a page that cannot be written before the handler has returned. */
__attribute__((noinline)) static void touch_page(void) {
    *page = 1;
}

__attribute__((noinline)) static void touch_pages(void) {
    for (;;) {
        (void)mprotect((void *)page, PAGE, PROT_NONE);
        touch_page();
    }
}

static void *map(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        abort();
    return memory;
}

static void run_signals(int flags) {
    struct sigaction action = {.sa_handler = on_fault, .sa_flags = flags};
    stack_t stack = {.ss_sp = map(STACK_BYTES), .ss_size = STACK_BYTES};

    page = map(PAGE);
    if (sigaltstack(&stack, NULL) < 0 || sigaction(SIGSEGV, &action, NULL) < 0)
        abort();
    touch_pages();
}

static void run_coroutine(void) {
    (void)run_thread(NULL);
}

static void start_coroutine(void) {
    static ucontext_t caller, coroutine;

    (void)getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = map(STACK_BYTES);
    coroutine.uc_stack.ss_size = STACK_BYTES;
    makecontext(&coroutine, run_coroutine, 0);
    (void)swapcontext(&caller, &coroutine);
}

/* In turn with zeros, with ones, with noise, and with what was there. */
static void rewrite_file(char **words) {
    off_t offset = strtoll(words[1], NULL, 10);
    size_t size = strtoul(words[2], NULL, 10);
    FILE *file = fopen(words[0], "r+");
    char *first = malloc(size), *bytes = malloc(size);

    if (!file || !first || !bytes || pread(fileno(file), first, size, offset) != (ssize_t)size)
        abort();
    for (unsigned turn = 0;; turn++) {
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)(turn % 4 == 0   ? 0
                              : turn % 4 == 1 ? -1
                              : turn % 4 == 2 ? rand()
                                              : first[i]);
        if (pwrite(fileno(file), bytes, size, offset) != (ssize_t)size)
            abort();
        (void)usleep(1000);
    }
}

static void start_thread(void) {
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_thread, NULL) != 0)
        abort();
}

int main(int argc, char **argv) {
    const char *kind = argc > 1 ? argv[1] : "";

    say_ready();
    if (strcmp(kind, "thread") == 0)
        start_thread();
    else if (strcmp(kind, "signal") == 0)
        run_signals(0);
    else if (strcmp(kind, "altstack") == 0)
        run_signals(SA_ONSTACK);
    else if (strcmp(kind, "coroutine") == 0)
        start_coroutine();
    else if (strcmp(kind, "rewrite") == 0 && argc == 5) {
        start_thread();
        rewrite_file(argv + 2);
    } else
        return EXIT_FAILURE;
    for (;;)
        (void)pause();
}
